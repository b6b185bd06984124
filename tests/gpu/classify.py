"""Trains a ResNet by Lightning on pictures that are changed as they are read. usage: classify.py [EPOCHS] [WORKERS]"""
import sys
import pytorch_lightning as pl
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision import models, transforms

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
WORKERS = int(sys.argv[2]) if len(sys.argv) > 2 else 0


class Pictures(Dataset):
    change = transforms.Compose([
        transforms.RandomResizedCrop(64), transforms.RandomHorizontalFlip(), transforms.ColorJitter(0.2, 0.2),
        transforms.ToTensor(), transforms.Normalize((0.5,) * 3, (0.25,) * 3)])

    def __len__(self):
        return 2048

    def __getitem__(self, index):
        return self.change(Image.effect_noise((96, 96), 40 + index % 50).convert("RGB")), index % 10


class Classifier(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = models.resnet18(num_classes=10)

    def training_step(self, batch, _):
        pictures, labels = batch
        scores = self.net(pictures)
        loss = torch.nn.functional.cross_entropy(scores, labels)
        self.log("loss", loss.item(), prog_bar=True)
        self.log("accuracy", (scores.argmax(1) == labels).float().mean().item(), prog_bar=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), 1e-3)


def main():
    trainer = pl.Trainer(max_epochs=EPOCHS, enable_progress_bar=False, logger=False, enable_checkpointing=False,
                         accelerator="auto", devices=1)
    trainer.fit(Classifier(), DataLoader(Pictures(), batch_size=64, shuffle=True, num_workers=WORKERS))


if __name__ == "__main__":
    main()
