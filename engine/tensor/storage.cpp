#include "engine/tensor/storage.h"

namespace convoy {

Storage::Storage(const Device& device, std::size_t bytes)
    : device_(device),
      bytes_(bytes),
      block_(context(device).memory().allocate(bytes, &current_stream(device))) {}

void Storage::use_until(const Event& event) {
  std::erase_if(readers_, [](const Event& reader) { return reader.done(); });
  readers_.push_back(event);
  block_.use_until(event);
}

void Storage::await_readers(Stream& stream) {
  for (const Event& reader : readers_) stream.wait(reader);
  readers_.clear();
}

}  // namespace convoy
