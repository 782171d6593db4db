// Pipe in a C++ program: pointers that own the library's objects, and exceptions. Compiles
// axpy.pipe, prints its head, launches it on a GPU if there is one, and runs it on host data.
//   c++ -std=c++17 embed.cpp $(pkg-config --cflags --libs pipec) -o embed && ./embed ../axpy.pipe
#include <cstdio>
#include <memory>
#include <pipec.h>
#include <stdexcept>
#include <vector>

template <auto free> struct Free {
    template <class T> void operator()(T *object) const { free(object); }
};
using Program = std::unique_ptr<PipecProgram, Free<pipec_program_free>>;
using Kernel = std::unique_ptr<PipecKernel, Free<pipec_kernel_free>>;
using Run = std::unique_ptr<PipecRun, Free<pipec_run_free>>;
using Diagnostics = std::unique_ptr<PipecDiagnostics, Free<pipec_diagnostics_free>>;

static void check(PipecStatus status, const PipecDiagnostics *diagnostics) {
    if (status == PIPEC_FINE) return;
    throw std::runtime_error(diagnostics ? pipec_diagnostics_text(diagnostics) : "no memory");
}

static Kernel load(const Program &program, int device) {
    PipecKernel *kernel;
    PipecDiagnostics *diagnostics;
    PipecStatus status = pipec_kernel_load(program.get(), device, &kernel, &diagnostics);
    check(status, Diagnostics(diagnostics).get());
    return Kernel(kernel);
}

static void launch(const Kernel &kernel, const std::vector<PipecArgument> &arguments, void *stream) {
    PipecLaunch how = {};
    how.size = sizeof how, how.argument_size = sizeof arguments[0], how.stream = stream;
    how.arguments = arguments.data(), how.count = arguments.size();
    PipecDiagnostics *diagnostics;
    PipecStatus status = pipec_kernel_launch(kernel.get(), &how, &diagnostics);
    check(status, Diagnostics(diagnostics).get());
}

int main(int argc, char **argv) try {
    Program program(pipec_compile_file(argc > 1 ? argv[1] : "examples/axpy.pipe", nullptr));
    check(pipec_program_status(program.get()), pipec_program_diagnostics(program.get()));
    std::puts(pipec_program_head(program.get()));
    try {
        Kernel axpy = load(program, 0);
        launch(axpy, std::vector<PipecArgument>(3), nullptr); // X and Y without elements, a = 0
        std::puts("launched");
    } catch (const std::runtime_error &error) {
        std::fputs(error.what(), stderr); // there is no GPU
    }
    std::vector<PipecValue> values = {{"N", 1000, 0, false}, {"a", 0, 2.5, true}};
    PipecRunOptions options = {};
    options.size = sizeof options;
    options.numbers = values.data(), options.number_count = values.size();
    Run run(pipec_run_new(program.get(), &options));
    check(pipec_run_execute(run.get(), nullptr), pipec_run_diagnostics(run.get()));
    std::printf("%s\n", pipec_run_verify(run.get()) == PIPEC_RIGHT ? "right" : "wrong");
} catch (const std::runtime_error &error) {
    return std::fputs(error.what(), stderr), 1;
}
