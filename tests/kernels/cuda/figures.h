// Checks of how kernels use memory, in programs that are built with the emulator's checks.
#pragma once

#include "kernels/emulator/kernel_figures.h"
#include "tests/support/catch.h"

namespace convoy::testing {

/// At most 1.1 times the sectors and wavefronts that hold the bytes asked for, at each load and
/// store.
inline void check_figures(const emulator::KernelFigures& kernel) {
  INFO(kernel.kernel);
  CHECK(!kernel.sites.empty());
  for (const emulator::SiteFigures& site : kernel.sites) {
    INFO((site.is_write ? "writes at " : "reads at ")
         << site.place << (site.is_shared ? ", shared" : ", global") << ", " << site.requests
         << " requests, " << site.bytes << " bytes");
    CHECK(double(site.actual) <= double(site.ideal) * 1.1);
  }
}

}  // namespace convoy::testing
