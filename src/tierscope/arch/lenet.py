"""LeNet-5: two convolutions and three linear layers, for handwritten digits."""

from tierscope.arch.layer import Shape
from tierscope.arch.network import Builder, Network


def lenet5(shape: Shape = (1, 28, 28)) -> Network:
    net = Builder("lenet5", shape)
    number = iter(range(100))

    def name() -> str:
        return f"f.{next(number)}"

    for channels, padding in ((6, 2), (16, 0)):
        net.conv(name(), channels, 5, padding=padding, bias=True)
        net.activation(name(), "Tanh")
        net.pool(name(), 2, kind="Avg")
    net.flatten(name())
    for features in (120, 84):
        net.linear(name(), features)
        net.activation(name(), "Tanh")
    net.linear(name(), 10)
    return net.network()
