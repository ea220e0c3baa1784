"""Trains the trainers' models with PyTorch in Python, for `bench/compare trainers`.

usage: python_worker.py MODEL BATCH_SIZE LENGTH STEPS WARMUP
MODEL is resnet50 (images of LENGTH x LENGTH) or pssp (proteins of LENGTH residues). Prints
the seconds of every step after the warm-up as a JSON list. There is one process;
OMP_NUM_THREADS sets its threads. Models and operators are those of trainers/models.
"""

import json
import math
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.shortcut = None
        if stride != 1 or inputs != 4 * width:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        out = torch.relu_(self.bn1(self.conv1(x)))
        out = torch.relu_(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += x if self.shortcut is None else self.shortcut(x)
        return torch.relu_(out)


def resnet50(classes=1000):
    layers = [nn.Conv2d(3, 64, 7, 2, padding=3, bias=False), nn.BatchNorm2d(64),
              nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, padding=1)]
    inputs = 64
    for stage, (blocks, width) in enumerate([(3, 64), (4, 128), (6, 256), (3, 512)]):
        for block in range(blocks):
            layers.append(Bottleneck(inputs, width, 2 if stage > 0 and block == 0 else 1))
            inputs = 4 * width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes)]
    return nn.Sequential(*layers)


class Attention(nn.Module):
    def __init__(self, d_model, heads, d_k, dropout):
        super().__init__()
        self.heads, self.d_k = heads, d_k
        self.query, self.key, self.value = (nn.Linear(d_model, heads * d_k) for _ in range(3))
        self.output = nn.Linear(heads * d_k, d_model)
        self.dropout = nn.Dropout(dropout)

    def split(self, projected):
        return projected.view(*projected.shape[:2], self.heads, self.d_k).transpose(1, 2)

    def forward(self, queries, memory, hidden):
        query, key, value = (self.split(layer(x)) for layer, x in (
            (self.query, queries), (self.key, memory), (self.value, memory)))
        scores = (query.matmul(key.transpose(-2, -1)) * (1 / math.sqrt(self.d_k))).masked_fill(
            hidden, torch.finfo(torch.float32).min)
        weights = self.dropout(scores.softmax(-1))
        return self.output(weights.matmul(value).transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, d_model, d_inner):
        super().__init__()
        self.expand, self.contract = nn.Conv1d(d_model, d_inner, 1), nn.Conv1d(d_inner, d_model, 1)

    def forward(self, x):
        return self.contract(torch.relu(self.expand(x.transpose(1, 2)))).transpose(1, 2)


class AddNorm(nn.Module):
    def __init__(self, d_model, dropout):
        super().__init__()
        self.dropout, self.norm = nn.Dropout(dropout), nn.LayerNorm(d_model)

    def forward(self, x, branch):
        return self.norm(x + self.dropout(branch))


class Layer(nn.Module):
    """A layer of the encoder or, with `memory`, of the decoder."""

    def __init__(self, decodes, d_model=256, d_inner=512, heads=8, d_k=64, dropout=0.5):
        super().__init__()
        self.attention, self.norm = Attention(d_model, heads, d_k, 0.1), AddNorm(d_model, dropout)
        if decodes:
            self.memory_attention = Attention(d_model, heads, d_k, 0.1)
            self.memory_norm = AddNorm(d_model, dropout)
        self.feed_forward = FeedForward(d_model, d_inner)
        self.feed_forward_norm = AddNorm(d_model, dropout)

    def forward(self, x, hidden, real, memory=None, memory_hidden=None):
        x = self.norm(x, self.attention(x, x, hidden)) * real
        if memory is not None:
            x = self.memory_norm(x, self.memory_attention(x, memory, memory_hidden)) * real
        return self.feed_forward_norm(x, self.feed_forward(x)) * real


class Transformer(nn.Module):
    def __init__(self, d_model=256, layers=2, positions=703):
        super().__init__()
        angles = torch.arange(positions)[:, None] / 10000 ** (
            2 * torch.div(torch.arange(d_model), 2, rounding_mode="floor") / d_model)
        table = torch.where(torch.arange(d_model) % 2 == 0, angles.sin(), angles.cos())
        table[0] = 0
        self.register_buffer("sinusoids", table)
        self.source = nn.Embedding(25, d_model, padding_idx=0)
        self.target = nn.Embedding(12, d_model, padding_idx=0)
        self.encoder = nn.ModuleList([Layer(False) for _ in range(layers)])
        self.decoder = nn.ModuleList([Layer(True) for _ in range(layers)])
        self.projection = nn.Linear(d_model, 12, bias=False)

    def embed(self, embedding, tokens, positions):
        return embedding(tokens) + F.embedding(positions, self.sinusoids)

    def forward(self, source, source_positions, target, target_positions):
        hidden = source.eq(0)[:, None, None]
        real = source.ne(0)[..., None].float()
        memory = self.embed(self.source, source, source_positions)
        for layer in self.encoder:
            memory = layer(memory, hidden, real)
        ahead = torch.ones(1, 1, target.shape[1], target.shape[1], dtype=torch.bool).triu(1)
        target_hidden = target.eq(0)[:, None, None] | ahead
        target_real = target.ne(0)[..., None].float()
        x = self.embed(self.target, target, target_positions)
        for layer in self.decoder:
            x = layer(x, target_hidden, target_real, memory, hidden)
        return self.projection(x)


def resnet50_step(batch_size, side):
    model = resnet50()
    optimizer = torch.optim.SGD(model.parameters(), 0.0125, momentum=0.9, weight_decay=5e-5)
    images = torch.randn(batch_size, 3, side, side)
    labels = torch.randint(1000, (batch_size,))

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def pssp_step(batch_size, length):
    model = Transformer()
    optimizer = torch.optim.Adam(model.parameters(), 1e-5, betas=(0.9, 0.98), eps=1e-9)
    source = torch.randint(4, 25, (batch_size, length + 2))
    target = torch.randint(4, 12, (batch_size, length + 1))
    expected = torch.randint(4, 12, (batch_size, length + 1))
    source_positions = torch.arange(1, length + 3).repeat(batch_size, 1)
    target_positions = torch.arange(1, length + 2).repeat(batch_size, 1)
    correct = []

    def step():
        optimizer.zero_grad()
        logits = model(source, source_positions, target, target_positions).reshape(-1, 12)
        loss = F.cross_entropy(logits, expected.reshape(-1), ignore_index=0, reduction="sum")
        loss.backward()
        optimizer.step()
        correct.append(logits.argmax(1).eq(expected.reshape(-1)).sum().item())
        return loss.item()

    return step


def main(model, batch_size, length, steps, warmup):
    torch.manual_seed(42)
    step = {"resnet50": resnet50_step, "pssp": pssp_step}[model](batch_size, length)
    seconds = []
    for _ in range(warmup + steps):
        start = time.monotonic()
        if not math.isfinite(step()):
            sys.exit("python_worker: the loss is not finite")
        seconds.append(time.monotonic() - start)
    print(json.dumps(seconds[warmup:]))


if __name__ == "__main__":
    main(sys.argv[1], *(int(argument) for argument in sys.argv[2:]))
