# SPDX-License-Identifier: Apache-2.0
"""A small stand-in for lightning.pytorch: what its manual says that a Trainer does to a module, and tells its callbacks."""

import torch


class Callback:
    def __getattr__(self, name):
        if name.startswith("on_"):
            return lambda *_: None
        raise AttributeError(name)


class LightningModule(torch.nn.Module):
    def log(self, name, value):
        self.logged[name] = value


class Trainer:
    def __init__(self, max_epochs, callbacks, logger, enable_checkpointing, enable_progress_bar):
        self.max_epochs, self.callbacks = max_epochs, callbacks
        self.global_step, self.current_epoch, self.should_stop, self.sanity_checking, self.callback_metrics = 0, 0, False, True, {}

    def tell(self, event, *more):
        for callback in self.callbacks:
            getattr(callback, f"on_{event}")(self, self.module, *more)

    def validate(self, loader):
        self.module.eval()
        self.tell("validation_start")
        with torch.no_grad():
            for number, batch in enumerate(loader):
                self.module.validation_step(batch, number)
        self.callback_metrics = dict(self.module.logged)
        self.tell("validation_end")
        self.module.train()

    def fit(self, module, train_loader, held_out):
        self.module, module.logged = module, {}
        optimizer = module.configure_optimizers()
        self.tell("fit_start")
        self.validate(held_out)
        self.sanity_checking = False
        self.tell("train_start")
        for _ in range(self.max_epochs):
            self.tell("train_epoch_start")
            for number, batch in enumerate(train_loader):
                self.tell("train_batch_start", batch, number)
                optimizer.zero_grad()
                module.training_step(batch, number).backward()
                optimizer.step()
                self.global_step += 1
                if self.should_stop:
                    break
            self.validate(held_out)
            self.tell("train_epoch_end")
            if self.should_stop:
                break
        self.tell("train_end")
