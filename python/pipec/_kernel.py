"""Kernels: what a call does is in the extension, all else is here."""

import operator
import os
import warnings
from collections import namedtuple

from . import _arrays, _errors, _pipec

os.register_at_fork(after_in_child=_pipec.forked)


class Parameter(namedtuple("Parameter", "name type is_tensor mode extents alignment")):
    """A parameter of a kernel, as the source declares it: `mode` is "in", "out" or "inout",
    `extents` are formulas like ("M", "K"), `alignment` is that of a tensor's address on a GPU, in
    bytes."""

    __slots__ = ()


class Trial(namedtuple("Trial", "variant statics end seconds spread remark")):
    """A variant, or None, with values of statics that tune() considered. `end` is "measured", "unfit"
    (refused), "unproved" (a verdict is incomplete, and not accepted), "wrong" (its result violates `ensures`), "slow" (dropped after its first round), "left"
    (not measured: others are expected to be faster) or "endless"; `spread` is (slowest round -
    fastest round) / median; `remark` says why it was excluded, or is a warning or None."""

    __slots__ = ()


class Choice(namedtuple("Choice",
                        "variant statics predicted limit machine tuned candidates fixed")):
    """What a launch uses: the variant or None, the values of the statics that were open, the time
    that the model expects in seconds (0: it knows none) on `machine`, what takes longest; whether
    tune() has measured it; the number of candidates; and the file of choices that fixes it, or
    None."""

    __slots__ = ()


class _Options(namedtuple("_Options",
                          "kernel deny watchdog untuned loaded_most patience choices invariant "
                          "accept target")):
    """How a text is compiled: the arguments of load() and compile(), but statics."""

    __slots__ = ()


class Tuning:
    """Result of tune(): `best` are the fastest statics, in `variant` or None, `kernel` is compiled
    with them, `trials` are all candidates, the fastest first."""

    def __init__(self, kernel, trials):
        self.trials = trials
        found = bool(trials) and trials[0].end == "measured"
        self.variant = trials[0].variant if found else None
        self.best = trials[0].statics if found else None
        self.kernel = kernel._with(self.variant, self.best) if found else kernel

    def __repr__(self):
        unfit = sum(t.end in ("unfit", "unproved", "left") for t in self.trials)
        lines = [
            f"{' '.join(filter(None, (t.variant, _values(t.statics))))}: "
            + (f"{1e6 * t.seconds:.2f} us" if t.end == "measured" else f"{t.end}, {t.remark}")
            for t in self.trials if t.end not in ("unfit", "unproved", "left")
        ]
        if unfit:
            lines.append(f"{unfit} not measured: they do not fit or are not proved, or others "
                         "are expected to be faster")
        return "\n".join(lines) or "<nothing was tried>"


class Run(namedtuple("Run", "verdict arguments arrays seconds device")):
    """What Kernel.run() returns: the verdict on `ensures` and the arguments, as texts; all tensors
    by name, as NumPy arrays after the run; the seconds of the run, and by what it was executed."""

    __slots__ = ()


class Text(str):
    """A text of several lines, which an interactive session shows as such."""

    def __repr__(self):
        return str(self)


def _number(name, value):
    """The value of a static as a plain number of Python: NumPy's are shown in another way. The name
    of an element type stays a text."""
    if isinstance(value, str) and value.isidentifier():
        return value
    try:
        return operator.index(value)
    except TypeError:
        if hasattr(value, "__float__"):
            return float(value)
        raise TypeError(
            f"the static `{name}` must be a number, or the name of an element type, not {value!r}"
        ) from None


def _word(name, value):
    return f"{name}={value}" if isinstance(value, str) else f"{name}={value!r}"


def _values(statics):
    return " ".join(_word(name, value) for name, value in statics.items())


class Kernel(_pipec.Kernel):
    """A compiled kernel, made by pipec.load() and pipec.compile(). Call it with tensors:

        C = gemm(A, B)          outputs are allocated, with the extents that follow from the others
        gemm(A, B, C=out)       or given, by name

    Tensors that are read or updated, and scalars, are given by position or name, in the order of
    the parameters; extents that no tensor determines by name. `inout` tensors are written in
    place. Returns the output, a tuple of several, or None.

    Tensors of a GPU (PyTorch, CuPy, JAX) are launched on the current stream, without waiting. Host
    arrays (NumPy, any buffer) run on the emulator. help(kernel) describes its own signature.
    """

    _launch = None, 0, None, 0, None  # the arguments of on() and emulated()

    def _setup(self, text, name, options, statics, path):
        self._text, self._name, self._options, self._given = text, name, options, statics
        self._path = path
        self._variants = {}
        facts = self._describe()
        self._files = tuple(facts["files"])
        is_open = options is not None and ":" not in (options[0] or "")
        self.__name__ = facts["name"].partition(":")[0] if is_open else facts["name"]
        #: the kernel's head, as in the source
        self.signature = facts["head"]
        self.parameters = tuple(
            Parameter(n, t, is_tensor, mode, tuple(extents), alignment)
            for n, t, is_tensor, mode, extents, alignment in facts["parameters"])
        #: values of the statics that this kernel is compiled with
        self.statics = {n: value for n, value, _ in facts["statics"]}
        #: the sets of the statics that have one, for tune()
        self.choices = {n: tuple(choices) for n, _, choices in facts["statics"] if choices}
        #: (condition, reason) of each condition of a launch
        self._places = tuple(facts["decided"])  # (static, parameter, axis, or -1: the type)
        self.preconditions = tuple(facts["preconditions"])
        self.ensures = tuple(facts["ensures"])
        self.diagnostics = _errors.diagnostics(facts["diagnostics"])
        self.__doc__ = _description(self)
        if any(d.severity == "warning" for d in self.diagnostics):
            warnings.warn("\n" + _errors.warning(facts["warnings"], self.diagnostics),
                          _errors.CompileWarning, stacklevel=4)
        return self

    def using(self, *, variant=None, invariant=None, target=None, **statics):
        """The same kernel, compiled with other values of its statics: gemm.using(BM=256)(A, B); or
        another variant of it, with the values of its own statics that are given here; or one whose
        calls choose what is `invariant`, or compiled for `target`, as for load(). Each combination
        is compiled once."""
        self._needs_source("using")
        statics = _numbers(statics)
        key = variant, invariant, target, *sorted(statics.items())
        if key not in self._variants:
            options = self._options
            if invariant is not None:
                options = options._replace(invariant=bool(invariant))
            if target is not None:
                options = options._replace(target=target)
            if variant is not None:
                kernel = _one(self.__name__.partition(":")[0], variant)
                options = options._replace(kernel=kernel)
            else:
                statics = {**self._given, **statics}
            self._variants[key] = _compile(self._text, self._name, options, statics,
                                            self._path, files=self._files)
        return self._variants[key]._as(self._launch)

    def on(self, stream=None, *, multiprocessors=0, programmatic=None):
        """The same kernel, launched in another way: on `stream` (an address, or an object with
        `__cuda_stream__`, `cuda_stream` or `ptr`) instead of the current one; a persistent grid on
        at most `multiprocessors`; before the kernel ahead of it has ended (programmatic launch; None: if it is short)."""
        if multiprocessors < 0:
            raise ValueError(f"multiprocessors is {multiprocessors}; 0: all")
        return self._as((_stream(stream), multiprocessors, programmatic, *self._launch[3:]))

    def emulated(self, *, seconds=0, progress=None):
        """The same kernel, of which a run on the emulator ends with a TimeoutError after some
        seconds (0: it never does), before any output is written. `progress` is called with the part
        that is done, an estimate, and the seconds so far; by default a line on a terminal shows
        them, with False nothing."""
        if not seconds >= 0:
            raise ValueError(f"seconds is {seconds}; 0: no limit")
        return self._as((*self._launch[:3], float(seconds), progress))

    def _as(self, launch):
        if launch == self._launch:
            return self
        kernel = self._launched(*launch)
        kernel.__dict__.update(self.__dict__)
        kernel._launch = launch
        return kernel

    def prepare(self, device=0, shapes=(), *, threads=0):
        """Loads the kernel on a GPU, which the first call does otherwise, and what calls with these
        shapes will choose: dicts of the extents, of scalars, and of statics that tensors decide, such
        as {"M": 512, "N": 4096, "K": 1024}. Several threads compile and load (at most 8; 0: one for
        each processor); on a terminal a bar shows the progress. Returns info(device)."""
        shapes = tuple(tuple(_word(n, v) for n, v in _numbers(shape).items()) for shape in shapes)
        if shapes:
            from . import _progress

            self._needs_source("prepare")
            _warn(self._prepare(device, shapes, threads, _progress.bar(self.__name__)))
        return self._info(device)

    def info(self, device=0):
        """Facts of the kernel on a GPU, on which it is loaded if it was not: registers, blocks per
        multiprocessor, seconds of the load and by what it was loaded; and how many combinations of
        variant and statics calls have loaded now (`variants_loaded`), how many of them are in captured
        graphs, which stay (`variants_captured`), and the most of the others (`variants_most`)."""
        return self._info(device)

    def verify(self, *args, **named):
        """As a call with host arrays, and compares the result with `ensures`. Returns the verdict
        as a text; raises pipec.Refused if the result is wrong. Without tensors as run()."""
        reads = {p.name for p in self.parameters if p.is_tensor and p.mode != "out"}
        if args or not reads or reads & named.keys():
            return self._verify(*args, **named)
        return self.run(**named).verdict

    def run(self, *, fills={}, seed=0, gpu=False, **values):
        """Runs the kernel on data of its `example`, as `pipec run`: `values` are extents and scalars
        that differ from those, `fills` those of tensors, by name: "normal", "uniform", "iota",
        "zeros", or a number. On the emulator, or on the first GPU. Compares the result with
        `ensures`: returns a Run, or raises pipec.Refused if it is wrong."""
        self._needs_source("run")
        for name in values.keys() & self.statics.keys():
            raise TypeError(f"{self.__name__}: `{name}` is a static, which is compiled in: write "
                            f"{self.__name__}.using({name}=..).run(..)")
        words = tuple(_word(name, value) for name, value in _numbers(values).items())
        verdict, arguments, arrays, seconds, device = self._run(
            words, tuple(f"{name}={fill}" for name, fill in fills.items()), seed, gpu)
        arrays = {name: _arrays.of_bytes(shape, kind, data) for name, kind, shape, data in arrays}
        return Run(verdict, arguments, arrays, seconds, device)

    @property
    def source(self):
        """The text that the kernel was compiled from, without the files that it includes; None: it was
        loaded without it."""
        return None if self._text is None else Text(self._text)

    @property
    def included(self):
        """The texts of the files that it includes, as they were read, by their names relative to the
        folder of the first one: {"common.pipe": ..}"""
        return {name: Text(text) for name, text in self._files}

    @property
    def path(self):
        """What load() was given: a file, a shipped kernel ("kernels:linear"), an image or a bundle.
        None: compile() was given a text."""
        return self._path

    def tune(self, *args, rounds=0, candidates=12, near=False, seconds=0, limit=10, progress=None,
             **named):
        """Measures the variants and values of statics that the model expects to be the fastest
        (`candidates` of them, None: all) on the GPU and with the extents of these tensors, saves the
        times as `pipec tune` does, and returns a Tuning. With `near` they also count for extents
        within 10 %. After `seconds` (0: any number) candidates that were not measured are left out;
        a launch is given up after `limit` seconds. `progress` is called as progress("measuring", done,
        of) before each step; by default a line on a terminal shows it, with False nothing. Takes the
        arguments of a call; the elements are random."""
        kernel = self._decided("tune", args, named)
        if kernel is not self:
            return kernel.tune(*args, rounds=rounds, candidates=candidates, near=near,
                               seconds=seconds, limit=limit, progress=progress, **named)
        words, device = self._words("tune", args, named)
        import tempfile

        from . import _progress

        if seconds < 0 or not limit > 0:
            raise ValueError(f"seconds is {seconds}, limit is {limit}; 0 seconds: no limit")
        if candidates is not None and candidates < 1:
            raise ValueError(f"candidates is {candidates}; None: all")

        steps = _progress.Steps(self.__name__, seconds, progress)
        with steps, tempfile.NamedTemporaryFile("w", suffix=".pipe", encoding="utf-8") as file:
            file.write(self._text)
            file.flush()
            trials = _pipec.tune(file.name, self._files, self.__name__, words, device, rounds,
                                 -1 if candidates is None else candidates, near,
                                 self._options.accept, float(limit), steps.next,
                             self._options.target)
        return Tuning(self, [Trial(kernel.partition(":")[2] or None, *rest)
                             for kernel, *rest in trials])

    def choose(self, *args, **named):
        """What a call with these arguments uses, as a Choice; None if nothing is open: variants and
        statics without a given value are chosen for each call, unless the kernel was loaded with
        `untuned`. Of host arrays, for an H200."""
        kernel = self._decided("choose", args, named)
        if kernel is not self:
            return kernel.choose(*args, **named)
        values, device, _, strides = self._values(*args, **named)
        chosen = self._choose(tuple(_word(n, v) for n, v in values.items()), strides, device)
        if chosen is None:
            return None
        kernel, *rest = chosen
        return Choice(kernel.partition(":")[2] or None, *rest)

    def tuned(self, *args, **named):
        """The kernel compiled with the statics that tune(), or `pipec tune`, has saved for these
        extents and this GPU; itself if there are none."""
        kernel = self._decided("tuned", args, named)
        if kernel is not self:
            return kernel.tuned(*args, **named)
        words, device = self._words("tuned", args, named)
        chosen = self._tuned(words, device)
        if chosen is None:
            return self
        kernel, statics = chosen
        return self._with(kernel.partition(":")[2] or None, statics)

    def _with(self, variant, statics):
        if variant is None or ":" in (self._options[0] or ""):
            return self.using(**statics)
        return self.using(variant=variant, **{**self._given, **statics})

    def _decided(self, name, args, named):
        """The kernel with the statics that these tensors decide"""
        self._needs_source(name)
        statics = self._values(*args, **named)[2]
        return self.using(**statics) if statics else self

    def _words(self, name, args, named):
        """The scalars, extents and given statics of a call on a GPU as NAME=VALUE, and its device"""
        values, device, *_ = self._values(*args, **named)
        if device < 0:
            raise ValueError(f"{self.__name__}.{name}() is about runs on a GPU: pass tensors of one")
        values = {**values, **self._given}
        return tuple(_word(name, value) for name, value in values.items()), device

    def _needs_source(self, name):
        if self._text is None:
            raise ValueError(f"{self.__name__}.{name}() needs the source: use pipec.load()")

    def report(self):
        """What was derived, and why: barriers, counts, bytes, layouts, registers, shared memory."""
        return Text(self._report())

    @property
    def ptx(self):
        """The generated PTX."""
        return Text(self._ptx())

    @property
    def manifest(self):
        """The data that a launcher needs in addition to the PTX (docs/manifest.md), as a dict."""
        import json

        return json.loads(self._manifest())

    def __getitem__(self, grid):
        names = ", ".join(p.name for p in self.parameters if p.mode != "out")
        raise TypeError(f"{self.__name__} takes no grid in brackets, which is in its file: call "
                        f"{self.__name__}({names})")

    __iter__ = None  # an index does not make it a sequence

    def __repr__(self):
        statics = f" with {_values(self.statics)}" if self.statics else ""
        return f"<{self.signature}{statics}>"

    def __copy__(self):
        return self  # kernels do not change

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        self._needs_source("__reduce__")
        if self._launch[0] is not None:
            raise TypeError(f"{self.__name__}: a kernel with a stream, which belongs to its "
                            "process, cannot be pickled")
        return _again, (self._text, self._name, self._options, self._given, self._path,
                        self._launch, self._files)

    @property
    def __signature__(self):
        from inspect import Parameter as P, Signature

        first = [P(p.name, P.POSITIONAL_OR_KEYWORD) for p in self.parameters if p.mode != "out"]
        last = [P(p.name, P.KEYWORD_ONLY, default=None) for p in self.parameters if p.mode == "out"]
        return Signature(first + last)


def _warn(text):
    if text is not None:
        warnings.warn("\n" + text, _errors.CompileWarning, stacklevel=3)


def _stream(stream):
    if stream is None or isinstance(stream, int):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        return stream.__cuda_stream__()[1]
    for name in ("cuda_stream", "ptr"):
        if hasattr(stream, name):
            return getattr(stream, name)
    raise TypeError(f"a stream is an address or an object of a library, not {stream!r}")


def _description(kernel):
    lines = [kernel.signature]
    if kernel.preconditions:
        lines += ["", "A launch is refused unless:"]
        lines += [f"    {text}" + (f"   ({why})" if why else "")
                  for text, why in kernel.preconditions]
    if kernel.statics:
        lines += ["", "Statics, which using() changes:"]
        for name, value in kernel.statics.items():
            choices = kernel.choices.get(name)
            among = f" in {{{', '.join(map(repr, choices))}}}" if choices else ""
            lines.append(f"    {name} = {value!r}{among}")
    if kernel.ensures:
        lines += ["", "Ensures:"] + ["    " + line for e in kernel.ensures for line in
                                     e.splitlines()]
    return "\n".join(lines)


def _compile(text, name, options, statics, path, folder=None, files=None):
    """`files`: what the text includes, read before; None: it is read from the folder"""
    words = tuple(_word(n, value) for n, value in statics.items())
    made = _pipec.compile(Kernel, text, name, folder, files, words, *options)
    return made._setup(text, name, options, statics, path)


def _again(text, name, options, statics, path, launch, files=()):
    return _compile(text, name, options, statics, path, files=files)._as(launch)


def _one(kernel, variant):
    return kernel if variant is None else f"{kernel or ''}:{variant}"


def _options(kernel, variant, deny, watchdog, untuned, loaded_most, patience, choices,
             invariant, accept, target):
    denied = (deny,) if isinstance(deny, str) else tuple(deny)
    if isinstance(accept, bool):
        accept = ("incomplete",) if accept else ()
    accepted = (accept,) if isinstance(accept, str) else tuple(accept)
    if loaded_most < 0 or patience < 0:
        raise ValueError(f"loaded_most is {loaded_most}, patience is {patience}; 0: the default")
    return _Options(_one(kernel, variant), denied, watchdog, untuned, loaded_most, float(patience),
                    None if choices is None else os.path.abspath(os.fsdecode(choices)),
                    bool(invariant), accepted, target)


def _numbers(statics):
    return {name: _number(name, value) for name, value in statics.items()}


def compile(text, kernel=None, *, variant=None, name="<text>", folder=None, deny=(),
            watchdog=False, untuned=False, loaded_most=0, patience=0, choices=None, invariant=False, accept=(),
            target=None, **statics):
    """Compiles a text. `kernel` names one of several, `variant` one of those of a kernel; `statics`
    are values like BM=256. `deny` are codes of warnings that become errors, or "warnings"; `accept`
    are codes of incomplete verdicts that become warnings, or True, for all: then the kernel is used
    without the proof. With `watchdog` a hang on a GPU ends with a message. `name` is the text's
    name in messages, `folder` what its includes are relative to (None: it can have none). A variant and statics that are not given are chosen for each call
    (Kernel.choose); with `untuned` they are the first that can run, and the values of the text. At
    most `loaded_most` of those that were chosen stay loaded on a GPU (0: 40), but for captured
    graphs. A call waits for its choice to be loaded, or `patience` seconds: then it takes another
    one that can run, if one is loaded, and later calls the choice. `choices` is a file that `pipec
    choose --save` has written: calls with extents that are in it run what it says. With `invariant`
    calls choose among variants in which the order of each sum depends on its own extents, so that a
    row of a result has the same bits for any number of rows. It is compiled for `target`; None: the
    best of its targets for the GPU of each call, on the emulator the first.
    Raises pipec.Refused if the program is wrong."""
    if not isinstance(text, str):
        raise TypeError(f"compile() takes the text of a program, not {type(text).__name__}")
    options = _options(kernel, variant, deny, watchdog, untuned, loaded_most, patience, choices,
                       invariant, accept, target)
    return _compile(text, name, options, _numbers(statics), None,
                    None if folder is None else os.fsdecode(folder))


_SHIPPED = "kernels:"


def _shipped(path):
    texts = _pipec.shipped()
    name = path.removeprefix(_SHIPPED)
    if name not in texts:
        known = ", ".join(_SHIPPED + known for known in texts)
        raise FileNotFoundError(f"there is no shipped kernel {name}: these are shipped: {known}")
    return texts[name]


def _read(path):
    with open(path, encoding="utf-8") as file:
        try:
            return file.read()
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not a text in UTF-8: {error}") from None


def load(path, kernel=None, *, variant=None, deny=(), watchdog=False, untuned=False, loaded_most=0,
         patience=0, choices=None, invariant=False, accept=(), target=None, **statics):
    """Compiles a file, or a kernel that is shipped, "kernels:linear"; otherwise as compile()."""
    path = os.fsdecode(path)
    shipped = path.startswith(_SHIPPED)
    text = _shipped(path) if shipped else _read(path)
    options = _options(kernel, variant, deny, watchdog, untuned, loaded_most, patience, choices,
                       invariant, accept, target)
    return _compile(text, path, options, _numbers(statics), path,
                    None if shipped else os.path.dirname(path) or ".",
                    _pipec.shipped_files() if shipped else None)


def load_image(manifest, image):
    """Loads what `pipec build` has written, without the source: the manifest (.json), and the PTX
    or the cubin of the same build. What needs the source is refused: using(), verify(), report()
    and tuning; and host arrays, if it is a cubin."""
    with open(manifest, "rb") as file:
        facts = file.read()
    with open(image, "rb") as file:
        made = _pipec.load_image(Kernel, facts, file.read(), os.fsdecode(image))
    return made._setup(None, os.fsdecode(image), None, {}, os.fsdecode(image))


def load_bundle(folder, *, loaded_most=0, patience=0, target=None):
    """Loads what `pipec build --bundle` has written, without the source: calls choose among what is in
    the folder, and warn once of sizes that it was not made for. `loaded_most`, `patience` and `target` as
    for load(). What needs the source is refused, as by load_image()."""
    if loaded_most < 0 or patience < 0:
        raise ValueError(f"loaded_most is {loaded_most}, patience is {patience}; 0: the default")
    folder = os.path.abspath(os.fsdecode(folder))
    made = _pipec.load_bundle(Kernel, folder, loaded_most, float(patience), target)
    return made._setup(None, folder, None, {}, folder)


def explain(code):
    """The page of a diagnostic's code: a wrong program, why, and a right one."""
    page = _pipec.explain(code)
    if page is None:
        raise KeyError(f"there is no code {code}")
    return Text(page)
