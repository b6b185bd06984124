"""Answers requests by a language model, with generate(). usage: answer.py [REQUESTS]"""
import sys
import time
import torch
from transformers import LlamaConfig, LlamaForCausalLM

REQUESTS = int(sys.argv[1]) if len(sys.argv) > 1 else 12


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    config = LlamaConfig(vocab_size=8000, hidden_size=512, intermediate_size=1408, num_hidden_layers=8,
                         num_attention_heads=8, num_key_value_heads=4)
    model = LlamaForCausalLM(config).to(device, torch.bfloat16).eval()
    for request in range(REQUESTS):
        prompt = torch.randint(0, 8000, (1, 40 + 7 * request), device=device)
        begun = time.perf_counter()
        answer = model.generate(prompt, max_new_tokens=100, do_sample=True, top_p=0.9, pad_token_id=0)
        tokens = answer.shape[1] - prompt.shape[1]
        print(f"{tokens / (time.perf_counter() - begun):.0f} tokens/s")


main()
