#include "cli/terminal.h"

#include <unistd.h>

#include <cstdlib>

namespace convoy::cli {

bool is_terminal(int descriptor) {
  return ::isatty(descriptor) && !std::getenv("OMPI_COMM_WORLD_SIZE");
}

}  // namespace convoy::cli
