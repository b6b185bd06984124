"""Reinforcement learning: environments in NumPy, a policy and value network in PyTorch, PPO."""
import sys, time
import numpy as np
import torch
from torch import nn


class Worlds:
    def __init__(self, count):
        self.random, self.count = np.random.default_rng(0), count
        self.state = self.random.standard_normal((count, 24))

    def step(self, actions):
        rewards, ends = np.zeros(self.count), np.zeros(self.count, bool)
        for i in range(self.count):
            s = self.state[i]
            s[:4] += 0.1 * actions[i]
            s += 0.01 * np.sin(s) + self.random.normal(0, 0.02, 24)
            rewards[i] = -np.abs(s[:4]).sum()
            ends[i] = np.abs(s).max() > 4
            if ends[i]:
                self.state[i] = self.random.standard_normal(24)
        return self.state.astype(np.float32), rewards.astype(np.float32), ends


def net(outputs):
    return nn.Sequential(nn.Linear(24, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, outputs))


def main(rounds):
    torch.manual_seed(0)
    worlds, policy, value = Worlds(32), net(4).cuda(), net(1).cuda()
    spread = nn.Parameter(torch.zeros(4, device="cuda"))
    optimizer = torch.optim.Adam([*policy.parameters(), *value.parameters(), spread], lr=3e-4)
    seen = worlds.state.astype(np.float32)
    for number in range(rounds):
        began = time.time()
        kept = []
        for _ in range(128):
            with torch.no_grad():
                at = torch.from_numpy(seen).cuda()
                chance = torch.distributions.Normal(policy(at), spread.exp())
                action = chance.sample()
                log, worth = chance.log_prob(action).sum(-1), value(at)[:, 0]
            seen, reward, end = worlds.step(action.cpu().numpy())
            kept.append((at, action, log, worth, torch.from_numpy(reward).cuda(), torch.from_numpy(end).cuda()))
        at, action, log, worth, reward, end = (torch.stack(x) for x in zip(*kept))
        gain, later = torch.zeros_like(reward), torch.zeros(32, device="cuda")
        for t in reversed(range(127)):
            rest = (~end[t]).float()
            later = reward[t] + 0.99 * worth[t + 1] * rest - worth[t] + 0.94 * rest * later
            gain[t] = later
        at, action, log, gain, target = at.flatten(0, 1), action.flatten(0, 1), log.flatten(), gain.flatten(), (gain + worth).flatten()
        for _ in range(4):
            for part in torch.randperm(len(at), device="cuda").split(512):
                chance = torch.distributions.Normal(policy(at[part]), spread.exp())
                ratio = (chance.log_prob(action[part]).sum(-1) - log[part]).exp()
                g = (gain[part] - gain[part].mean()) / (gain[part].std() + 1e-8)
                loss = -torch.min(ratio * g, ratio.clamp(0.8, 1.2) * g).mean() + 0.5 * (value(at[part])[:, 0] - target[part]).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
                optimizer.step()
        print(f"round {number}: reward {reward.mean().item():.2f} in {time.time() - began:.2f} s", flush=True)


main(int(sys.argv[1]))
