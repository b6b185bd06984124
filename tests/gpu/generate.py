"""Answers prompts with a small language model, token by token, with a cache of keys and values."""
import sys, time
import torch
from torch import nn
from torch.nn import functional as F


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.up, self.gate, self.down = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, 3 * width, bias=False), nn.Linear(3 * width, width, bias=False)

    def forward(self, x, cache):
        b, t, _ = x.shape
        h = self.norm1(x)
        q, k, v = (f(h).view(b, t, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, -1))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h)), (k, v)


class Model(nn.Module):
    def __init__(self, words=32000, width=1024, layers=16, heads=16):
        super().__init__()
        self.word = nn.Embedding(words, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens, caches):
        x, new = self.word(tokens), []
        for layer, cache in zip(self.layers, caches):
            x, cache = layer(x, cache)
            new.append(cache)
        return self.head(self.norm(x[:, -1])), new


def penalize(scores, seen, by):
    for row in range(scores.shape[0]):
        used = torch.unique(seen[row])
        scores[row, used] = scores[row, used] / by
    return scores


@torch.inference_mode()
def answer(model, prompt, most, end=2):
    tokens, caches = prompt, [None] * len(model.layers)
    done = torch.zeros(len(prompt), dtype=torch.bool, device="cuda")
    new = prompt
    for _ in range(most):
        scores, caches = model(new, caches)
        scores = penalize(scores.float(), tokens, 1.2)
        kept, places = torch.topk(scores, 50)
        pick = torch.multinomial(torch.softmax(kept / 0.8, -1), 1)
        new = places.gather(-1, pick)
        tokens = torch.cat([tokens, new], 1)
        done |= new[:, 0] == end
        if done.all():
            break
    return tokens


def main(requests):
    torch.manual_seed(0)
    model = Model().cuda().to(torch.bfloat16).eval()
    for request in range(requests):
        began = time.time()
        prompt = torch.randint(3, 32000, (8, 64 + request % 5 * 32)).cuda()
        tokens = answer(model, prompt, 96)
        print(f"request {request}: {tokens.shape[1]} tokens in {time.time() - began:.2f} s", flush=True)


main(int(sys.argv[1]))
