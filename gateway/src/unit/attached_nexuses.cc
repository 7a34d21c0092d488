#include "unit/attached_nexuses.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/limits.h"
#include "unit/attention_log.h"
#include "unit/reservations/reservations.h"

namespace sluice::lun {
namespace {

void queue(AttachedNexus& nexus, UnitAttention ua) {
  auto& pending = nexus.pending;
  if (std::find(pending.begin(), pending.end(), ua) == pending.end()) {
    // In practice the limit is never reached. If it is, 29/00 makes a host read everything again,
    // so the dropped attentions do no harm.
    if (pending.size() >= limits::kMaxUnitAttentions) pending.assign(1, {0x29, 0x00});
    pending.push_back(ua);
  }
  nexus.attention.store(true, std::memory_order_release);
}

}  // namespace

AttachedNexuses::AttachedNexuses(std::mutex& mutex)
    : mutex_(mutex), log_(std::make_unique<AttentionLog>()) {}

AttachedNexuses::~AttachedNexuses() = default;

// One step under the mutex: a condition that is raised concurrently is either in the log, or raised
// for the nexus.
void AttachedNexuses::attach(AttachedNexus& nexus, const std::vector<UnitAttention>& first,
                             uint64_t since) {
  const std::lock_guard lock(mutex_);
  nexuses_.push_back(&nexus);
  context_ = nexus.reactor_context();
  for (const UnitAttention ua : first) queue(nexus, ua);
  const auto raised = nexus.forwarded()
                          ? log_->raised_for_forwarded(since, nexus.host_since(), nexus.nexus_id())
                          : log_->raised_after(since, nexus.nexus_id());
  for (const UnitAttention ua : raised) queue(nexus, ua);
}

void AttachedNexuses::detach(AttachedNexus* nexus) {
  const std::lock_guard lock(mutex_);
  std::erase(nexuses_, nexus);
}

std::vector<std::shared_ptr<AttachedNexus>> AttachedNexuses::living_locked(
    const std::function<bool(const AttachedNexus&)>& which) const {
  std::vector<std::shared_ptr<AttachedNexus>> living;
  for (AttachedNexus* nexus : nexuses_) {
    if (which && !which(*nexus)) continue;
    // Empty if the last reference is being released: then it has no commands either.
    if (auto alive = nexus->weak_from_this().lock()) living.push_back(std::move(alive));
  }
  return living;
}

void AttachedNexuses::on_every(Reactors& reactors,
                               const std::function<void(AttachedNexus&)>& what) const {
  std::vector<std::shared_ptr<AttachedNexus>> all;
  {
    const std::lock_guard lock(mutex_);
    all = living_locked();
  }
  std::map<unsigned, std::vector<std::shared_ptr<AttachedNexus>>> by_reactor;
  for (auto& nexus : all) by_reactor[nexus->reactor_context().reactor].push_back(std::move(nexus));
  for (auto& [reactor, nexuses] : by_reactor) {
    reactors.post(reactor, [these = std::move(nexuses), what] {
      for (const auto& nexus : these) what(*nexus);
    });
  }
}

void AttachedNexuses::raise(UnitAttention ua, const AttachedNexus* except) {
  const std::lock_guard lock(mutex_);
  raise_locked(ua, except);
}

void AttachedNexuses::raise_locked(UnitAttention ua, const AttachedNexus* except) {
  for (AttachedNexus* nexus : nexuses_) {
    if (nexus != except) queue(*nexus, ua);
  }
  log_->add(ua);
}

void AttachedNexuses::raise_owners(UnitAttention ua, const AttachedNexus* except, Nanos now) {
  const std::lock_guard lock(mutex_);
  raise_owners_locked(ua, except, now);
}

void AttachedNexuses::raise_owners_locked(UnitAttention ua, const AttachedNexus* except,
                                          Nanos now) {
  for (AttachedNexus* nexus : nexuses_) {
    if (nexus != except) queue(*nexus, ua);
  }
  log_->add_here(ua, now, except ? &except->nexus_id() : nullptr);
}

void AttachedNexuses::raise_for(AttachedNexus& nexus, UnitAttention ua) {
  const std::lock_guard lock(mutex_);
  queue(nexus, ua);
}

void AttachedNexuses::raise_for_locked(const std::vector<Registration>& whom, const NexusId& by,
                                       UnitAttention ua) {
  const auto concerned = covered_by(whom, by);
  for (AttachedNexus* nexus : nexuses_) {
    if (concerned(nexus->nexus_id())) queue(*nexus, ua);
  }
  log_->add(ua, whom);
}

bool AttachedNexuses::pop(AttachedNexus& nexus, UnitAttention* out) {
  const std::lock_guard lock(mutex_);
  if (nexus.pending.empty()) return false;
  *out = nexus.pending.front();
  nexus.pending.erase(nexus.pending.begin());
  if (nexus.forwarded()) log_->record_reported(*out, nexus.nexus_id());
  if (nexus.pending.empty()) nexus.attention.store(false, std::memory_order_release);
  return true;
}

void AttachedNexuses::clear(AttachedNexus& nexus, UnitAttention ua) {
  const std::lock_guard lock(mutex_);
  std::erase(nexus.pending, ua);
  if (nexus.pending.empty()) nexus.attention.store(false, std::memory_order_release);
}

}  // namespace sluice::lun
