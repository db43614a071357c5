#include "engine/tensor/storage.h"

#include "engine/tensor/tensor.h"

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

void Storage::offer_remake(Remake remake) {
  remake.version = version_;
  remake_ = std::make_shared<const Remake>(std::move(remake));
}

std::shared_ptr<const Remake> Storage::remake() const {
  return remake_ && remake_->version == version_ ? remake_ : nullptr;
}

}  // namespace convoy
