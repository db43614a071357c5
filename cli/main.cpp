// The program `convoy`.
#include "cli/program.h"
#include "cli/signals.h"
#include "cli/thread_waiting.h"

int main(int argc, char** argv) {
  convoy::cli::prefer_short_spins(argv);
  convoy::cli::install_signals();
  return convoy::cli::run_program({argv + 1, argv + argc});
}
