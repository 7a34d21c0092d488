#include "unit/change_watch.h"

#include "unit/rod_source.h"

namespace sluice::lun {

void ChangeWatch::add(const std::shared_ptr<RodSource>& source) {
  const std::lock_guard lock(mutex_);
  sources_.push_back(source);
  armed_.store(true, std::memory_order_seq_cst);
}

void ChangeWatch::revoke(uint64_t first, uint64_t last, Nanos now) {
  const std::lock_guard lock(mutex_);
  std::erase_if(sources_, [&](const std::weak_ptr<RodSource>& weak) {
    const std::shared_ptr<RodSource> source = weak.lock();
    if (!source) return true;
    // It is removed from the watch, so an expired token must not become valid again.
    if (source->overlaps(first, last) || source->expired(now)) source->revoke();
    return source->revoked();
  });
  if (sources_.empty()) armed_.store(false, std::memory_order_relaxed);
}

}  // namespace sluice::lun
