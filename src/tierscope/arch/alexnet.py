"""AlexNet, in the form for one device: most of its parameters are in linear layers."""

from tierscope.arch.layer import Shape
from tierscope.arch.network import Builder, Network

# channels, kernel, stride, padding, whether a pool follows
_CONVOLUTIONS = (
    (64, 11, 4, 2, True),
    (192, 5, 1, 2, True),
    (384, 3, 1, 1, False),
    (256, 3, 1, 1, False),
    (256, 3, 1, 1, True),
)
_DROPPED = 0.5


def alexnet(shape: Shape = (3, 224, 224)) -> Network:
    net = Builder("alexnet", shape)
    number = iter(range(100))

    def name() -> str:
        return str(next(number))

    for channels, kernel, stride, padding, pooled in _CONVOLUTIONS:
        net.conv(name(), channels, kernel, stride=stride, padding=padding, bias=True)
        net.activation(name(), inplace=True)
        if pooled:
            net.pool(name(), 3, stride=2)
    net.flatten(name())
    for _ in range(2):
        net.activation(name(), "Dropout", slope=_DROPPED)
        net.linear(name(), 4096)
        net.activation(name(), inplace=True)
    net.linear(name(), 1000)
    return net.network()
