"""DeepCAM: climate segmentation with a modified Xception, atrous pyramid and transposed convolutions.

Most convolutions are depthwise (as many groups as channels) followed by one of kernel 1.
"""

from tierscope.arch.layer import Shape
from tierscope.arch.network import Builder, Network

_FEATURES = "xception_features"
_MIDDLE = range(4, 20)  # blocks that keep size and channels


def deepcam(shape: Shape = (16, 768, 1152)) -> Network:
    net = Builder("deepcam", shape)
    low = _entry(net)
    for number in _MIDDLE:
        _block(net, f"{_FEATURES}.block{number}", (728, 728, 728))
        net.activation(f"{_FEATURES}.block{number}.relu", inplace=True)
    _block(net, f"{_FEATURES}.block20", (728, 1024, 1024), shortcut=True, dense_end=True)
    for number, channels in enumerate((1536, 1536, 2048), start=3):
        _separable(net, f"{_FEATURES}.conv{number}", channels, dilation=2)
        net.norm(f"{_FEATURES}.bn{number}.bn")
        net.activation(f"{_FEATURES}.relu", inplace=True)
    _pyramid(net)
    _decoder(net, net.last, low)
    return net.network()


def _entry(net: Builder) -> int:
    """The first three blocks, each halving the sides. Gives the layer that the decoder reads too."""
    net.conv(f"{_FEATURES}.conv1", 32, 3, stride=2, padding=1)
    net.norm(f"{_FEATURES}.bn1.bn")
    net.activation(f"{_FEATURES}.relu", inplace=True)
    net.conv(f"{_FEATURES}.conv2", 64, 3, padding=1)
    net.norm(f"{_FEATURES}.bn2.bn")
    net.activation(f"{_FEATURES}.relu", inplace=True)
    low = -1
    for number, channels in enumerate((128, 256, 728), start=1):
        _block(net, f"{_FEATURES}.block{number}", (channels,) * 3, stride=2, shortcut=True, dense_end=True)
        last = net.activation(f"{_FEATURES}.relu" if number == 1 else f"{_FEATURES}.block{number}.relu", inplace=True)
        low = last if number == 1 else low
    return low


def _separable(net: Builder, name: str, channels: int, *, stride: int = 1, dilation: int = 1) -> int:
    groups = net.shape(net.last)[0]
    net.conv(f"{name}.conv1", groups, 3, stride=stride, padding=dilation, dilation=dilation, groups=groups)
    return net.conv(f"{name}.pointwise", channels, 1)


def _block(
    net: Builder,
    name: str,
    channels: tuple[int, int, int],
    *,
    stride: int = 1,
    shortcut: bool = False,
    dense_end: bool = False,
) -> None:
    """Three separable convolutions beside a shortcut. `dense_end`: the third has neither activation before nor normalisation after."""
    entry = net.last
    _separable(net, f"{name}.rep.0", channels[0])
    net.norm(f"{name}.rep.1.bn")
    net.activation(f"{name}.relu", inplace=True)
    _separable(net, f"{name}.rep.3", channels[1])
    main = net.norm(f"{name}.rep.4.bn")
    if dense_end:
        main = _separable(net, f"{name}.rep.5", channels[2], stride=stride)
    else:
        net.activation(f"{name}.relu", inplace=True)
        _separable(net, f"{name}.rep.6", channels[2])
        main = net.norm(f"{name}.rep.7.bn")
    side = entry
    if shortcut:
        net.conv(f"{name}.skip", channels[2], 1, stride=stride, after=entry)
        side = net.norm(f"{name}.skipbn.bn")
    net.add(f"{name}.add", main, side)


def _pyramid(net: Builder) -> None:
    features = net.last
    branches = []
    for number, dilation in enumerate((1, 6, 12, 18), start=1):
        name = f"bottleneck.aspp{number}"
        kernel, padding = (1, 0) if dilation == 1 else (3, dilation)
        net.conv(f"{name}.atrous_convolution", 256, kernel, padding=padding, dilation=dilation, after=features)
        net.norm(f"{name}.bn.bn")
        branches.append(net.activation(f"{name}.relu", inplace=True))
    name = "bottleneck.global_avg_pool.global_average_pool"
    net.global_pool(f"{name}.0", after=features)
    net.conv(f"{name}.1", 256, 1)
    net.norm(f"{name}.2", kind="TrainableAffine")
    net.activation(f"{name}.3", inplace=True)
    branches.append(net.resize(f"{name}.resize", net.shape(features)[1:]))
    net.concat("bottleneck.concat", branches)
    net.conv("bottleneck.conv", 256, 1)
    net.norm("bottleneck.bn.bn")
    net.activation("bottleneck.relu", inplace=True)


def _decoder(net: Builder, features: int, low: int) -> None:
    net.conv("conv2", 48, 1, after=low)
    net.norm("bn2.bn")
    skipped = net.activation("relu", inplace=True)
    _doubled(net, "upsample.deconv1", 0, after=features)
    net.concat("upsample.concat", (_doubled(net, "upsample.deconv1", 3), skipped))
    for place in (0, 3):
        net.conv(f"upsample.conv1.{place}", 256, 3, padding=1)
        net.norm(f"upsample.conv1.{place + 1}.bn")
        net.activation(f"upsample.conv1.{place + 2}", inplace=True)
    net.conv("upsample.conv1.6", 256, 1, bias=True)
    _doubled(net, "upsample.deconv2", 0)
    net.transposed("upsample.last_deconv.0", 3, 3, stride=2, padding=1)


def _doubled(net: Builder, name: str, place: int, after: int | None = None) -> int:
    net.transposed(f"{name}.{place}", 256, 3, stride=2, padding=1, after=after)
    net.norm(f"{name}.{place + 1}.bn")
    return net.activation(f"{name}.{place + 2}", inplace=True)
