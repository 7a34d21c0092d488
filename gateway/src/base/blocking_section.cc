#include "base/blocking_section.h"

#include <atomic>
#include <mutex>
#include <set>
#include <utility>

namespace sluice {
namespace {

class Mark;

struct Marks {
  std::mutex mutex;
  std::set<const Mark*> all;
  uint64_t threads = 0;  // that ever had one
};

Marks& marks() {
  static Marks& one = *new Marks;  // never destroyed: threads may outlive main()
  return one;
}

// Of one thread.
class Mark {
 public:
  Mark() {
    const std::lock_guard lock(marks().mutex);
    // Another thread may get the address of this one later. Its sections have other numbers.
    last_ = ++marks().threads << 32;
    marks().all.insert(this);
  }
  ~Mark() {
    const std::lock_guard lock(marks().mutex);
    marks().all.erase(this);
  }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

  bool within() const { return section() != 0; }
  uint64_t section() const { return section_.load(std::memory_order_relaxed); }
  void begin() { section_.store(++last_, std::memory_order_relaxed); }
  void end() { section_.store(0, std::memory_order_relaxed); }

 private:
  uint64_t last_ = 0;
  std::atomic<uint64_t> section_{0};  // 0: none
};

Mark& mark() {
  static thread_local Mark mine;
  return mine;
}

}  // namespace

BlockingSection::BlockingSection() : outermost_(!mark().within()) {
  if (outermost_) mark().begin();
}

BlockingSection::~BlockingSection() {
  if (outermost_) mark().end();
}

bool BlockingSection::Scan::finds_lasting() {
  std::map<const void*, uint64_t> now;
  bool found = false;
  {
    const std::lock_guard lock(marks().mutex);
    for (const Mark* one : marks().all) {
      const uint64_t section = one->section();
      if (section == 0) continue;
      now[one] = section;
      const auto before = seen_.find(one);
      if (before != seen_.end() && before->second == section) found = true;
    }
  }
  seen_ = std::move(now);
  return found;
}

}  // namespace sluice
