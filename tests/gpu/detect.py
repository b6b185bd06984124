"""Detects objects: a small backbone, then boxes that are filtered, sorted and thinned out per picture."""
import sys, time
import torch
from torch import nn


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, 2, 1), nn.BatchNorm2d(o), nn.SiLU(), nn.Conv2d(o, o, 3, 1, 1), nn.BatchNorm2d(o), nn.SiLU())


def overlap(a, b):
    top, bottom = torch.max(a[:, None, :2], b[:, :2]), torch.min(a[:, None, 2:], b[:, 2:])
    inter = (bottom - top).clamp(0).prod(2)
    area = lambda x: (x[:, 2:] - x[:, :2]).prod(1)
    return inter / (area(a)[:, None] + area(b) - inter)


def thin(boxes, scores, most=0.5):
    order, kept = scores.argsort(descending=True)[:60], []
    while len(order) > 0:
        kept.append(order[0])
        if len(order) == 1:
            break
        other = overlap(boxes[order[:1]], boxes[order[1:]])[0]
        order = order[1:][other < most]
    return torch.stack(kept)


@torch.inference_mode()
def detect(model, head, pictures):
    out = head(model(pictures)).flatten(2).transpose(1, 2)
    found = []
    for picture in out:
        scores, labels = picture[:, 4:].softmax(-1).max(-1)
        sure = scores > scores.mean()
        boxes, scores, labels = picture[sure, :4], scores[sure], labels[sure]
        middle, size = boxes[:, :2] * 50, boxes[:, 2:].abs() * 30 + 5
        boxes = torch.cat([middle - size / 2, middle + size / 2], 1)
        keep = thin(boxes, scores)
        found.append({"boxes": boxes[keep].cpu().numpy(), "scores": scores[keep].cpu().numpy(), "labels": labels[keep].cpu().numpy()})
    return found


def main(batches):
    torch.manual_seed(0)
    model = nn.Sequential(block(3, 32), block(32, 64), block(64, 128), block(128, 256)).cuda().eval()
    head = nn.Conv2d(256, 84, 1).cuda()
    began = time.time()
    for number in range(batches):
        pictures = torch.randn(16, 3, 320, 320).cuda()
        found = detect(model, head, pictures)
        if number % 5 == 0:
            print(f"batch {number}: {sum(len(f['scores']) for f in found)} objects, {time.time() - began:.2f} s", flush=True)


main(int(sys.argv[1]))
