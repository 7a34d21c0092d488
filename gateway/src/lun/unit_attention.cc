// Unit attention conditions (SAM-5 §5.14, DESIGN R10).
#include <algorithm>

#include "base/limits.h"
#include "lun/attention_log.h"
#include "lun/reservations/reservation_effects.h"
#include "lun/unit.h"

namespace sluice::lun {
namespace {

void queue(Itl& itl, UnitAttention ua) {
  auto& pending = itl.pending;
  if (std::find(pending.begin(), pending.end(), ua) == pending.end()) {
    // Never reached by what this gateway raises. Should it be: 29/00 makes a host look at
    // everything anew, so nothing is lost with the rest.
    if (pending.size() >= limits::kMaxUnitAttentions) pending.assign(1, {0x29, 0x00});
    pending.push_back(ua);
  }
  itl.attention.store(true, std::memory_order_release);
}

}  // namespace

// In one step: what is raised meanwhile is found in the log, or raised for it.
void Unit::attach(Itl& itl, const std::vector<UnitAttention>& first, uint64_t since) {
  std::lock_guard lock(mutex_);
  itls_.push_back(&itl);
  lane_ = itl.nexus().lane();
  for (const UnitAttention ua : first) queue(itl, ua);
  const Nexus& nexus = itl.nexus();
  const auto raised = nexus.forwarded()
                          ? attentions_->raised_for_forwarded(since, nexus.host_since(), nexus.id())
                          : attentions_->raised_after(since, nexus.id());
  for (const UnitAttention ua : raised) queue(itl, ua);
}

void Unit::detach(Itl* itl) {
  std::lock_guard lock(mutex_);
  std::erase(itls_, itl);
}

void Unit::add_target(const std::shared_ptr<Target>& target) {
  std::lock_guard lock(mutex_);
  std::erase_if(targets_, [&target](const std::weak_ptr<Target>& known) {
    const auto alive = known.lock();
    return !alive || alive == target;
  });
  targets_.push_back(target);
}

std::vector<std::shared_ptr<Target>> Unit::targets_locked() const {
  std::vector<std::shared_ptr<Target>> living;
  for (const auto& target : targets_) {
    if (auto alive = target.lock()) living.push_back(std::move(alive));
  }
  return living;
}

void Unit::raise_attention(UnitAttention ua, const Itl* except) {
  std::lock_guard lock(mutex_);
  raise_attention_locked(ua, except);
}

void Unit::raise_attention_locked(UnitAttention ua, const Itl* except) {
  for (Itl* itl : itls_) {
    if (itl != except) queue(*itl, ua);
  }
  attentions_->add(ua);
}

void Unit::raise_owners_attention(UnitAttention ua, const Itl* except, Nanos now) {
  std::lock_guard lock(mutex_);
  for (Itl* itl : itls_) {
    if (itl != except) queue(*itl, ua);
  }
  attentions_->add_here(ua, now, except ? &except->nexus().id() : nullptr);
}

void Unit::reset_state(UnitAttention ua, Nanos now) {
  // Mode parameters go back to their defaults (SPC-5 §5.8: none are saved).
  set_mode(ModeParameters());
  set_stopped(false);
  // In one go: nobody finds a reservation gone without being told of the reset.
  const std::lock_guard lock(mutex_);
  reservations_->release6_any();
  reservations_changed();
  for (Itl* itl : itls_) queue(*itl, ua);
  attentions_->add_here(ua, now, nullptr);
}

void Unit::raise_attention_for(Itl& itl, UnitAttention ua) {
  std::lock_guard lock(mutex_);
  queue(itl, ua);
}

void Unit::raise_attention_for_locked(const std::vector<Registration>& whom, const NexusId& by,
                                      UnitAttention ua) {
  const auto concerned = covered_by(whom, by);
  for (Itl* itl : itls_) {
    if (concerned(itl->nexus().id())) queue(*itl, ua);
  }
  attentions_->add(ua, whom);
}

bool Unit::pop_attention(Itl& itl, UnitAttention* out) {
  std::lock_guard lock(mutex_);
  if (itl.pending.empty()) return false;
  *out = itl.pending.front();
  itl.pending.erase(itl.pending.begin());
  if (itl.nexus().forwarded()) attentions_->told(*out, itl.nexus().id());
  if (itl.pending.empty()) itl.attention.store(false, std::memory_order_release);
  return true;
}

void Unit::clear_attention(Itl& itl, UnitAttention ua) {
  std::lock_guard lock(mutex_);
  std::erase(itl.pending, ua);
  if (itl.pending.empty()) itl.attention.store(false, std::memory_order_release);
}

void tell_threshold_reached(Unit& unit) { unit.raise_attention({0x38, 0x07}, nullptr); }

}  // namespace sluice::lun
