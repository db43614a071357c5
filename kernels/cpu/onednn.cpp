#include "kernels/cpu/onednn.h"

#include <fmt/format.h>
#include <omp.h>

#include "kernels/base/context.h"
#include "kernels/base/error.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/library.h"

namespace convoy::cpu {
namespace {

// oneDNN's streams are not for several threads at once.
dnnl::stream& host_thread_stream() {
  thread_local dnnl::stream stream(engine());
  return stream;
}

void limit_isa() {
  const std::string name = isa().name;
  // The best of all leaves oneDNN free to use what is newer still.
  if (name.starts_with("avx512")) return;
  dnnl::set_max_cpu_isa(name == "avx2" ? dnnl::cpu_isa::avx2 : dnnl::cpu_isa::sse41);
}

}  // namespace

void open_library() {
  static const bool opened = [] {
    const dnnl_version_t* found = dnnl_version();
    CONVOY_CHECK(found->major == DNNL_VERSION_MAJOR && found->minor >= DNNL_VERSION_MINOR,
                 "oneDNN: found {}.{}.{} at run time, built with {}.{}.{}", found->major,
                 found->minor, found->patch, DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR,
                 DNNL_VERSION_PATCH);
    limit_isa();
    return true;
  }();
  static_cast<void>(opened);
}

std::string library_name() {
  const dnnl_version_t* found = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", found->major, found->minor, found->patch);
}

const dnnl::engine& engine() {
  // Never destroyed: streams may still run when static objects go.
  static const auto* engine = [] {
    open_library();
    return new dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return *engine;
}

const dnnl::primitive_attr& attributes() {
  static const auto* attributes = [] {
    auto* result = new dnnl::primitive_attr;
    result->set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return result;
  }();
  return *attributes;
}

bool has_tiles() {
  open_library();
  const dnnl::cpu_isa found = dnnl::get_effective_cpu_isa();
  return found == dnnl::cpu_isa::avx512_core_amx || found == dnnl::cpu_isa::avx512_core_amx_fp16;
}

int threads_of(const Stream& stream) {
  return context(stream.device()).threads();
}

void guarded(const char* kernel, const std::function<void()>& work) {
  try {
    work();
  } catch (const dnnl::error& error) {
    CONVOY_FAIL(internal, "{}: oneDNN: {} (status {})", kernel, error.message,
                static_cast<int>(error.status));
  }
}

ThreadsScope::ThreadsScope(int threads) : outer_(omp_get_max_threads()) {
  omp_set_num_threads(threads);
}

ThreadsScope::~ThreadsScope() {
  omp_set_num_threads(outer_);
}

int Program::external(const dnnl::memory::desc& desc) {
  slots_.push_back({desc, externals_++, 0});
  return static_cast<int>(slots_.size()) - 1;
}

int Program::temporary(const dnnl::memory::desc& desc) {
  slots_.push_back({desc, -1, bytes_});
  bytes_ += (desc.get_size() + 63) / 64 * 64;
  return static_cast<int>(slots_.size()) - 1;
}

int Program::input_as(int slot, const dnnl::memory::desc& desc) {
  if (slots_[slot].desc == desc) return slot;
  const int target = temporary(desc);
  copy(slot, target);
  return target;
}

int Program::output_as(int slot, const dnnl::memory::desc& desc) {
  if (slots_[slot].desc == desc) return slot;
  const int copy = temporary(desc);
  outputs_.emplace_back(copy, slot);
  return copy;
}

void Program::add(const dnnl::primitive& primitive, std::vector<std::pair<int, int>> arguments,
                  const dnnl::memory::desc& scratchpad) {
  if (scratchpad.get_size() > 0) {
    arguments.emplace_back(DNNL_ARG_SCRATCHPAD, temporary(scratchpad));
  }
  steps_.push_back({primitive, std::move(arguments)});
}

void Program::copy(int from, int to) {
  const dnnl::reorder::primitive_desc desc(engine(), slots_[from].desc, engine(), slots_[to].desc,
                                           attributes());
  add(dnnl::reorder(desc), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}, desc.scratchpad_desc());
}

void Program::finish() {
  for (auto [from, to] : outputs_) copy(from, to);
  outputs_.clear();
}

void Program::run(const std::vector<void*>& externals, std::byte* scratch) const {
  std::unordered_map<int, dnnl::memory> arguments;
  for (const Step& step : steps_) {
    arguments.clear();
    for (auto [argument, index] : step.arguments) {
      const Slot& slot = slots_[index];
      void* data = slot.external < 0 ? scratch + slot.offset : externals[slot.external];
      arguments.emplace(argument, dnnl::memory(slot.desc, engine(), data));
    }
    step.primitive.execute(host_thread_stream(), arguments);
  }
  host_thread_stream().wait();
}

void submit(Stream& stream, const char* kernel, std::shared_ptr<const Program> program,
            std::vector<void*> externals, void* scratch) {
  const std::size_t bytes = program->scratch_bytes();
  if (bytes > 0 && !scratch) scratch = stream.scratch(bytes);
  host(stream).submit(
      [=, program = std::move(program), externals = std::move(externals)] {
        guarded(kernel, [&] { program->run(externals, static_cast<std::byte*>(scratch)); });
      },
      kernel);
}

dnnl::memory::desc plain_desc(const dnnl::memory::dims& dims) {
  dnnl::memory::dims strides(dims.size(), 1);
  for (std::size_t i = dims.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * dims[i];
  return {dims, dnnl::memory::data_type::f32, strides};
}

}  // namespace convoy::cpu
