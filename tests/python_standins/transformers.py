# SPDX-License-Identifier: Apache-2.0
"""A small stand-in for transformers: what its manual says that a Trainer does to a model, and tells its callbacks."""

import types

import torch
from torch.utils.data import DataLoader


class TrainerCallback:
    def __getattr__(self, name):
        if name.startswith("on_"):
            return lambda args, state, control, **kwargs: None
        raise AttributeError(name)


class TrainingArguments:
    def __init__(self, output_dir, **settings):
        self.output_dir = output_dir
        self.__dict__.update(settings)
        assert self.optim == "sgd" and self.lr_scheduler_type == "constant" and self.eval_strategy == "epoch"


class Trainer:
    def __init__(self, model, args, train_dataset, eval_dataset, compute_metrics, callbacks):
        self.model, self.args, self.callbacks, self.compute_metrics = model, args, callbacks, compute_metrics
        self.loader = DataLoader(train_dataset, batch_size=args.per_device_train_batch_size, shuffle=True)
        self.held_out = DataLoader(eval_dataset, batch_size=len(eval_dataset))
        self.state = types.SimpleNamespace(train_batch_size=args.per_device_train_batch_size, epoch=0, global_step=0)
        self.control = types.SimpleNamespace(should_training_stop=False, should_evaluate=False, should_save=False)

    def tell(self, event, **more):
        for callback in self.callbacks:
            keywords = {"model": self.model, "processing_class": None, "lr_scheduler": None, **more}
            self.control = getattr(callback, f"on_{event}")(self.args, self.state, self.control, **keywords) or self.control

    def evaluate(self):
        self.model.eval()
        with torch.no_grad():
            for batch in self.held_out:
                logits = self.model(**batch)["logits"]
                self.tell("prediction_step", eval_dataloader=self.held_out)
        self.model.train()
        figures = self.compute_metrics(types.SimpleNamespace(predictions=logits.numpy(), label_ids=batch["labels"].numpy()))
        self.tell("evaluate", metrics={f"eval_{name}": value for name, value in figures.items()})

    def train(self):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=self.args.learning_rate)
        self.tell("train_begin")
        while self.state.epoch < self.args.num_train_epochs and not self.control.should_training_stop:
            self.tell("epoch_begin")
            for batch in self.loader:
                self.tell("step_begin")
                optimizer.zero_grad()
                self.model(**batch)["loss"].backward()
                optimizer.step()
                self.state.global_step += 1
                self.tell("step_end")
                if self.control.should_training_stop:
                    break
            self.state.epoch += 1
            self.tell("epoch_end")
            self.evaluate()
        self.tell("train_end")
