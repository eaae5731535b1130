"""CosmoFlow: five convolutions in three dimensions and three linear layers, from a cube of dark matter to four numbers."""

from tierscope.arch.layer import Shape
from tierscope.arch.network import Builder, Network

_SLOPE = 0.3
_DROPPED = 0.5


def cosmoflow(shape: Shape = (4, 128, 128, 128)) -> Network:
    net = Builder("cosmoflow", shape)
    number = iter(range(100))

    def name() -> str:
        return str(next(number))

    for channels in (32, 64, 128, 256, 512):
        net.conv(name(), channels, 3, padding=1, bias=True)
        net.activation(name(), "LeakyReLU", slope=_SLOPE)
        net.pool(name(), 2)
    net.flatten(name())
    for features in (128, 64):
        net.linear(name(), features)
        net.activation(name(), "LeakyReLU", slope=_SLOPE)
        net.activation(name(), "Dropout", slope=_DROPPED)
    net.linear(name(), 4)
    net.activation(name(), "Tanh")
    return net.network()
