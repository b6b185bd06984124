"""A small training whose data set makes its pictures in Python: in the training's own loop, or in worker processes.

usage: pictures.py [--workers]
Prints how long each epoch took.
"""
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

WORKERS = {"num_workers": 8, "pin_memory": True, "persistent_workers": True} if "--workers" in sys.argv else {}


class Pictures(Dataset):
    def __init__(self, count: int):
        self.random = np.random.default_rng(0)
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int):
        picture = self.random.standard_normal((3, 64, 64), dtype=np.float32)
        if index % 2:
            picture = picture[:, :, ::-1].copy()
        picture = (picture - picture.mean()) / picture.std()
        return torch.from_numpy(picture), index % 10


def block(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2))


def evaluate(model: nn.Module, loader: DataLoader, device: torch.device) -> int:
    model.eval()
    right = 0
    with torch.no_grad():
        for pictures, labels in loader:
            right += (model(pictures.to(device)).argmax(1).cpu() == labels).sum().item()
    model.train()
    return right


def main() -> None:
    device = torch.device("cuda")
    model = nn.Sequential(block(3, 64), block(64, 128), block(128, 256), nn.Flatten(), nn.Linear(256 * 64, 10)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss_of = nn.CrossEntropyLoss()
    train = DataLoader(Pictures(6400), batch_size=64, shuffle=True, **WORKERS)
    test = DataLoader(Pictures(640), batch_size=64, **WORKERS)
    for epoch in range(3):
        began = time.time()
        for pictures, labels in train:
            pictures, labels = pictures.to(device, non_blocking=True), labels.to(device, non_blocking=True)
            optimizer.zero_grad()
            loss = loss_of(model(pictures), labels)
            loss.backward()
            optimizer.step()
            last = loss.item()
        right = evaluate(model, test, device)
        print(f"epoch {epoch}: {time.time() - began:.2f} s, loss {last:.3f}, right {right}", flush=True)


if __name__ == "__main__":
    main()
