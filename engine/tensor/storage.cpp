#include "engine/tensor/storage.h"

#include "engine/tensor/tensor.h"
#include "kernels/base/error.h"

namespace convoy {

Storage::Storage(const Device& device, std::size_t bytes)
    : device_(device),
      bytes_(bytes),
      block_(context(device).memory().allocate(bytes, &current_stream(device))),
      data_(static_cast<std::byte*>(block_.data())) {}

Storage::Storage(const Device& device, std::shared_ptr<std::byte> memory, std::size_t bytes,
                 MemoryPool::Share share)
    : device_(device),
      bytes_(bytes),
      memory_(std::move(memory)),
      share_(std::move(share)),
      data_(memory_.get()) {
  CONVOY_DCHECK(!is_gpu(device), "storage: memory of the host for {}", to_string(device));
}

// A block goes back to its pool, which knows of streams. Memory of somebody else may be unmapped:
// not before the work that is queued on it.
Storage::~Storage() {
  if (!memory_) return;
  try {
    Stream& stream = current_stream(device_);
    await_readers(stream);
    stream.host_call([memory = memory_] {});
  } catch (const Error&) {  // of the stream, whose work is over then
  }
}

void Storage::use_until(const Event& event) {
  std::erase_if(readers_, [](const Event& reader) { return reader.done(); });
  readers_.push_back(event);
  if (block_.data()) block_.use_until(event);
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
