// The time, for those who wait and measure.
#pragma once

#include <chrono>

namespace convoy {

/// Seconds of the steady clock.
inline double steady_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Seconds since 1970.
inline double wall_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace convoy
