#include "kernels/cpu/weight_layouts.h"

#include "kernels/base/error.h"
#include "kernels/cpu/onednn.h"

namespace convoy::cpu {
namespace {

/// Descriptors by number; the process's, for tensors refer to them for as long as they live.
struct Registry {
  std::mutex mutex;
  std::vector<dnnl::memory::desc> descs;
};

Registry& registry() {
  static auto* registry = new Registry;
  return *registry;
}

void check(const dnnl::memory::desc& desc, LayoutId layout, const Shape& shape) {
  std::int64_t count = 1;
  for (std::int64_t extent : desc.get_dims()) count *= extent;
  CONVOY_DCHECK(count == shape.count(), "reorder: weight layout {} is not for the shape {}", layout,
                to_string(shape));
}

}  // namespace

LayoutId weight_layout(const dnnl::memory::desc& desc) {
  if (desc == plain_desc(desc.get_dims())) return kPlain;
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  std::size_t i = 0;
  while (i < r.descs.size() && r.descs[i] != desc) ++i;
  if (i == r.descs.size()) r.descs.push_back(desc);
  return kFirstWeightLayout + static_cast<LayoutId>(i);
}

dnnl::memory::desc weight_desc(LayoutId layout) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  const auto index = static_cast<std::size_t>(layout - kFirstWeightLayout);
  CONVOY_DCHECK(layout >= kFirstWeightLayout && index < r.descs.size(),
                "layout {} is not one of weights", layout);
  return r.descs[index];
}

std::size_t weight_bytes(LayoutId layout, const Shape& shape) {
  const dnnl::memory::desc desc = weight_desc(layout);
  check(desc, layout, shape);
  return desc.get_size();
}

void submit_weight_reorder(Stream& stream, const Shape& shape, ConstBuffer x, Buffer y) {
  static auto* programs = new Cache<std::shared_ptr<const Program>>;
  const int threads = threads_of(stream);
  auto program = programs->get({x.layout, y.layout, threads}, [&] {
    const LayoutId known = x.layout >= kFirstWeightLayout ? x.layout : y.layout;
    const dnnl::memory::desc any = weight_desc(known);
    check(any, known, shape);
    auto desc_of = [&](LayoutId layout) {
      CONVOY_DCHECK(layout == kPlain || layout >= kFirstWeightLayout,
                    "reorder: {} is a layout of activations, {} one of weights", layout, known);
      return layout == kPlain ? plain_desc(any.get_dims()) : weight_desc(layout);
    };
    auto result = std::make_shared<Program>();
    guarded("reorder", [&] {
      const ThreadsScope scope(threads);
      const int from = result->external(desc_of(x.layout));
      const int to = result->external(desc_of(y.layout));
      result->copy(from, to);
    });
    return std::shared_ptr<const Program>(result);
  });
  submit(stream, "reorder", program, {const_cast<void*>(x.data), y.data});
}

}  // namespace convoy::cpu
