"""Writes NAME_state_dict.txt for the ResNets: name and extents of each entry of torchvision's state_dict, in order of names.

    python make_state_dicts.py OUT_DIR          needs torch; takes the networks of ../reference/make_reference.py, whose
                                                names are torchvision's
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "reference"))
from make_reference import RESNETS, ResNet

NETWORKS = {**RESNETS, "resnet152": ([3, 8, 36, 3], 4)}

if __name__ == "__main__":
    for name, (depths, expansion) in NETWORKS.items():
        network = ResNet(depths, expansion, 1000)
        entries = network.state_dict()
        parameters = sum(p.numel() for p in network.parameters())
        print(f"{name}: {len(entries)} entries, {parameters} values in parameters")
        if name not in ("resnet18", "resnet50"):
            continue
        with open(pathlib.Path(sys.argv[1]) / f"{name}_state_dict.txt", "w") as file:
            file.write("# version 1, written by make_state_dicts.py: name and extents\n")
            for key in sorted(entries):
                file.write(" ".join([key, *map(str, entries[key].shape)]) + "\n")
