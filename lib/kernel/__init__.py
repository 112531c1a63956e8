"""What csi-node asks of the kernel: a narrow protocol, its values and its errors.

The implementations are `lib/kernel/linux` and `lib/kernel/fake`; flows import neither.
"""
