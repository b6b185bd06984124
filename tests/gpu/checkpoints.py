"""Trains a small GPT on random text, clips gradients, evaluates now and then and keeps checkpoints."""
import math, os, sys, time
import torch
from torch import nn
from torch.nn import functional as F

FOLDER = os.environ.get("CKPT", "/tmp/w")


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, words=8192, width=768, layers=8, heads=12, length=512):
        super().__init__()
        self.word, self.place = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, x, y):
        h = self.word(x) + self.place(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            h = block(h)
        return F.cross_entropy(self.head(self.norm(h)).flatten(0, 1), y.flatten())


def batch(data, size, length):
    at = torch.randint(len(data) - length - 1, (size,))
    x = torch.stack([data[i : i + length] for i in at])
    y = torch.stack([data[i + 1 : i + 1 + length] for i in at])
    return x.cuda(), y.cuda()


@torch.no_grad()
def evaluate(model, data):
    model.eval()
    losses = [model(*batch(data, 16, 512)).item() for _ in range(10)]
    model.train()
    return sum(losses) / len(losses)


def main(steps):
    torch.manual_seed(0)
    data = torch.randint(8192, (2_000_000,))
    model = GPT().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1, (s + 1) / 50))
    began = time.time()
    for step in range(steps):
        for _ in range(2):
            with torch.autocast("cuda", torch.bfloat16):
                loss = model(*batch(data, 16, 512)) / 2
            loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        if step % 10 == 0:
            print(f"step {step}: loss {2 * loss.item():.3f} norm {norm.item():.2f} {time.time() - began:.2f} s", flush=True)
        if step % 40 == 39:
            print(f"eval {evaluate(model, data):.3f}", flush=True)
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, f"{FOLDER}/ckpt.pt")
    print(f"{steps} steps in {time.time() - began:.2f} s")


main(int(sys.argv[1]))
