"""A training with Lightning, configured by Hydra."""

import argparse

import cv2
import hydra
import lightning as L
import yaml
from PIL import Image
from sklearn.metrics import f1_score


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--output_dir", default="outputs")
    options = parser.parse_args()
    print(cv2, hydra, yaml, Image, f1_score, options)
    trainer = L.Trainer(accelerator="gpu", devices=4, num_nodes=2, max_epochs=3)
    trainer.fit(L.LightningModule())


if __name__ == "__main__":
    main()
