# SPDX-License-Identifier: GPL-2.0-or-later
"""A stand-in for TensorBoard, which Debian does not have: the parts of its interface that gpuq uses."""
