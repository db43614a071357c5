#include "engine/tensor/storage.h"

namespace convoy {

Storage::Storage(const Device& device, std::size_t bytes)
    : device_(device),
      bytes_(bytes),
      block_(context(device).memory().allocate(bytes, &current_stream(device))) {}

}  // namespace convoy
