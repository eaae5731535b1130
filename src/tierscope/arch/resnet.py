"""ResNet-50 and ResNet-101: bottleneck blocks of three convolutions beside a shortcut; the stride is at the second."""

from tierscope.arch.layer import Shape
from tierscope.arch.network import Builder, Network

_WIDTHS = (64, 128, 256, 512)
_GROWTH = 4  # channels after a block / within it


def resnet50(shape: Shape = (3, 224, 224)) -> Network:
    return _resnet("resnet50", (3, 4, 6, 3), shape)


def resnet101(shape: Shape = (3, 224, 224)) -> Network:
    return _resnet("resnet101", (3, 4, 23, 3), shape)


def _resnet(name: str, blocks: tuple[int, int, int, int], shape: Shape) -> Network:
    net = Builder(name, shape)
    net.conv("0", 64, 7, stride=2, padding=3)
    net.norm("1")
    net.activation("2", inplace=True)
    net.pool("3", 3, stride=2, padding=1)
    number = 4
    for stage, (width, count) in enumerate(zip(_WIDTHS, blocks, strict=True)):
        for block in range(count):
            _bottleneck(net, str(number), width, stride=2 if stage and not block else 1, shortcut=not block)
            number += 1
    net.global_pool(str(number))
    net.flatten(str(number + 1))
    net.linear(str(number + 2), 1000)
    return net.network()


def _bottleneck(net: Builder, name: str, width: int, stride: int, shortcut: bool) -> None:
    entry = net.last
    net.conv(f"{name}.c.0", width, 1)
    net.norm(f"{name}.c.1")
    net.activation(f"{name}.c.2", inplace=True)
    net.conv(f"{name}.c.3", width, 3, stride=stride, padding=1)
    net.norm(f"{name}.c.4")
    net.activation(f"{name}.c.5", inplace=True)
    net.conv(f"{name}.c.6", width * _GROWTH, 1)
    main = net.norm(f"{name}.c.7")
    side = entry
    if shortcut:
        net.conv(f"{name}.d.0", width * _GROWTH, 1, stride=stride, after=entry)
        side = net.norm(f"{name}.d.1")
    net.add(f"{name}.add", main, side)
    net.activation(f"{name}.r", inplace=True)
