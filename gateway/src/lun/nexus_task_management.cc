// Task management and the end of a nexus (SAM-5 §7, §6.3).
#include <algorithm>
#include <memory>
#include <utility>

#include "lun/countdown.h"
#include "lun/exports.h"
#include "lun/forwarding.h"
#include "lun/nexus.h"
#include "lun/owner_resets.h"
#include "lun/reservations/reservations.h"
#include "lun/task_set.h"
#include "lun/unit.h"

namespace sluice::lun {
namespace {

using Handle = std::shared_ptr<Countdown>;

// `done` as a posted task, so never inside a call.
Handle count_down_to(const Lane& lane, std::function<void()> done) {
  return std::make_shared<Countdown>([lane, done = std::move(done)]() mutable {
    lane.reactors->post(lane.reactor, std::move(done));
  });
}

void wait_for(Itl& itl, const Handle& all) {
  all->begin();
  if (!drain(itl, nullptr, [all] { all->through(); })) all->through();
}

}  // namespace

bool Nexus::abort_task_set(uint64_t lun_field, std::function<void()> done) {
  Itl* itl = use(lun_field);
  if (!itl) return false;
  const Handle all = count_down_to(lane_, std::move(done));
  const std::shared_ptr<Itl> alive = itl->shared_from_this();
  abort_all(*itl, false, nullptr);
  wait_for(*itl, all);
  abort_task_set_at_owner(itl->unit(), lun_field, all);
  all->through();
  return true;
}

// With one task set per I_T nexus (TST=001b) the set holds this nexus's commands only, which makes
// it the same as ABORT TASK SET (SAM-5 §7.5), at the owner too, and leaves nobody to be told 2F/00.
bool Nexus::clear_task_set(uint64_t lun_field, std::function<void()> done) {
  return abort_task_set(lun_field, std::move(done));
}

bool Nexus::logical_unit_reset(uint64_t lun_field, std::function<void(bool)> done) {
  const MappedLun* lun = listed(lun_field);
  if (!lun) return false;
  reset_units({*lun}, std::move(done));
  return true;
}

void Nexus::target_reset(std::function<void(bool)> done) {
  LunMap luns = *luns_;
  std::ranges::sort(luns, {}, [](const MappedLun& lun) { return std::pair(lun.unit, lun.lun); });
  const auto again = std::ranges::unique(luns, {}, &MappedLun::unit);
  luns.erase(again.begin(), again.end());
  reset_units(luns, std::move(done));
}

// Of what the owner has of this nexus, if anything. Nobody else is asked where it has another owner
// by then: all its commands are this gateway's too, and each is waited for by itself.
void Nexus::abort_task_set_at_owner(const Unit& unit, uint64_t lun_field,
                                    const std::shared_ptr<Countdown>& all) {
  const Role role = unit.role();
  if (role.standing != Standing::kForwarder) return;
  const std::shared_ptr<Link> link = open_link(role.owner);
  if (!link) return;
  all->begin();
  // Answered or not: nothing of before reaches a backend any more.
  link->function(LinkFunction::kAbortTaskSet, lun_field,
                 [all](bool /*answered*/) { all->through(); });
}

// SAM-5 §6.3.3: every I_T nexus is told, the one that asked too. Where there is an owner elsewhere,
// it is the owner that aborts everybody's commands and tells everybody (DESIGN R9).
void Nexus::reset_units(const LunMap& luns, std::function<void(bool)> done) {
  const auto at_owners = std::make_shared<bool>(true);  // this reactor's, as all that ends here
  const Handle all =
      count_down_to(lane_, [at_owners, done = std::move(done)] { done(*at_owners); });
  for (const MappedLun& lun : luns) {
    const std::shared_ptr<Unit>& unit = lun.unit;
    // Its own commands end now, not when a posted task runs: the function does not affect those
    // that come after it (RFC 7143 §11.5.1).
    for (Itl* itl : itls()) {
      if (&itl->unit() != unit.get()) continue;
      const std::shared_ptr<Itl> alive = itl->shared_from_this();
      abort_all(*itl, false, nullptr);
      wait_for(*itl, all);
    }
    const Standing standing = unit->role().standing;
    if (forwarded_ && standing != Standing::kOwner) {
      *at_owners = false;  // its forwarder asks who is, and may ask here many times before
      continue;
    }
    if (standing != Standing::kForwarder) {
      all->begin();
      reset_here(*this, unit, [all] { all->through(); });
    }
    if (standing == Standing::kOwner) continue;
    all->begin();
    owner_resets_.add(lun, [all, at_owners](bool at_owner) {
      *at_owners = *at_owners && at_owner;
      all->through();
    });
  }
  all->through();
}

void Nexus::close(bool lost, std::function<void()> done) {
  if (closed_) return lane_.reactors->post(lane_.reactor, std::move(done));
  closed_ = true;
  target_->remove(this);
  if (lost) target_->note_lost(id_);
  owner_resets_.clear();
  std::vector<std::shared_ptr<Itl>> mine = retired_;
  for (Itl* itl : itls()) mine.push_back(itl->shared_from_this());
  // `done` keeps the I_T_L nexuses and the LUNs until it runs, at the top of the stack: the last
  // command may end underneath functions of a unit that lives through them only.
  auto all = std::make_shared<Countdown>([self = shared_from_this(), mine, luns = luns_,
                                          done]() mutable {
    self->finish_close();
    // The links too: this may run underneath one of their functions.
    self->lane_.reactors->post(
        self->lane_.reactor, [self, mine = std::move(mine), luns = std::move(luns),
                              links = std::move(self->links_), done = std::move(done)] { done(); });
  });
  for (const std::shared_ptr<Itl>& itl : mine) abort_all(*itl, false, nullptr);
  for (const std::shared_ptr<Itl>& itl : mine) wait_for(*itl, all);
  for (auto& go_on : std::exchange(starved_, {})) {
    lane_.reactors->post(lane_.reactor, std::move(go_on));
  }
  for (size_t i = 0; i < links_.size(); ++i) {
    all->begin();
    links_[i].second->close(lost, [all] { all->through(); });
  }
  all->through();
}

// SAM-5 §6.3.4: RESERVE(6) goes with the nexus, persistent reservations stay.
void Nexus::finish_close() {
  for (Itl* itl : itls()) itl->unit().detach(itl);
  for (const MappedLun& lun : *luns_) {
    Unit& unit = *lun.unit;
    if (!(unit.gate() & Unit::kReserved)) continue;
    const std::lock_guard lock(unit.mutex());
    unit.reservations().release6(id_);
    unit.reservations_changed();
  }
  luns_ = std::make_shared<LunMap>();
  for (auto& itl : low_) itl.reset();
  high_.clear();
  retired_.clear();
}

}  // namespace sluice::lun
