// Whether ops of the calling thread are recorded for backward.
#pragma once

namespace convoy {

/// True unless a NoGradScope lives on this thread.
bool grad_enabled();

/// While it lives, ops of this thread record nothing.
class NoGradScope {
 public:
  NoGradScope();
  ~NoGradScope();
  NoGradScope(const NoGradScope&) = delete;
  NoGradScope& operator=(const NoGradScope&) = delete;

 private:
  bool outer_;
};

}  // namespace convoy
