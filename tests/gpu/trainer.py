"""Fine-tunes a small GPT-2 by Hugging Face's Trainer, as its documentation has it. usage: trainer.py [STEPS]"""
import sys
import tempfile
import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 400


class Tokens(Dataset):
    def __len__(self):
        return 20_000

    def __getitem__(self, index):
        tokens = torch.randint(0, 5000, (128,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": tokens, "labels": tokens}


def main():
    config = GPT2Config(vocab_size=5000, n_positions=128, n_embd=256, n_layer=4, n_head=4)
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(), max_steps=STEPS, per_device_train_batch_size=16, logging_steps=10,
        save_steps=max(STEPS // 2, 1), bf16=torch.cuda.is_available(), report_to="none", disable_tqdm=True,
        gradient_accumulation_steps=2,
    )
    trainer = Trainer(model=GPT2LMHeadModel(config), args=arguments, train_dataset=Tokens())
    print(f"{trainer.train().training_loss:.3f}")


if __name__ == "__main__":
    main()
