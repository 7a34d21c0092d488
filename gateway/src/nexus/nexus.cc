#include "nexus/nexus.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "commands/active_commands.h"
#include "commands/handler.h"
#include "nexus/absent_luns.h"
#include "nexus/forwarding.h"
#include "nexus/pipeline.h"
#include "scsi/report_luns.h"
#include "unit/attention_log.h"
#include "unit/countdown.h"
#include "unit/reservations/reservations.h"
#include "unit/statistics.h"

namespace sluice::lun {
namespace {

constexpr UnitAttention kPowerOn{0x29, 0x00};    // POWER ON, RESET, OR BUS DEVICE RESET
constexpr UnitAttention kNexusLoss{0x29, 0x07};  // I_T NEXUS LOSS OCCURRED
constexpr UnitAttention kModeParametersChanged{0x2a, 0x01};
constexpr UnitAttention kInventoryChanged{0x3f, 0x0e};  // REPORTED LUNS DATA HAS CHANGED

using Handle = std::shared_ptr<Countdown>;
// Posts `done`, so that it never runs within a call.
Handle count_down_to(const ReactorContext& context, std::function<void()> done) {
  return std::make_shared<Countdown>([context, done = std::move(done)]() mutable {
    context.reactors->post(context.reactor, std::move(done));
  });
}

void wait_for(Itl& itl, const Handle& all) {
  all->begin();
  if (!itl.drain_attached([all] { all->through(); })) all->through();
}

}  // namespace

// An attached I_T_L nexus. The destructor of the most derived class detaches it, because other
// reactors call virtual functions of attached ones.
class Nexus::OpenItl final : public Itl {
 public:
  using Itl::Itl;
  ~OpenItl() override { unit().attached().detach(this); }
  void after_completion() override { run_blocked(*this); }
  void on_role_change() override { nexus().resume_held(*this); }
};

Nexus::Nexus(std::shared_ptr<Target> target, NexusId id, const ReactorContext& context)
    : TargetNexus(std::move(id), context),
      target_(std::move(target)),
      luns_(std::make_shared<LunMap>()) {}

Nexus::~Nexus() = default;

std::shared_ptr<Nexus> Nexus::open(std::shared_ptr<Target> target, NexusId id,
                                   const ReactorContext& context, bool read_only,
                                   std::optional<Nanos> forwarded) {
  std::shared_ptr<Nexus> nexus(new Nexus(std::move(target), std::move(id), context));
  nexus->read_only_ = read_only;
  nexus->forwarded_ = forwarded.has_value();
  nexus->host_since_ = *nexus->context_.now;
  if (forwarded) nexus->host_since_ -= *forwarded + limits::host_age_slack(*forwarded);
  const bool lost = nexus->target_->take_lost(nexus->id_);
  // The target knows the nexus before its LUNs are read, so a concurrent change reaches the nexus.
  nexus->target_->add(nexus, *nexus);
  nexus->luns_ = nexus->target_->lun_map();
  nexus->opened_at_ = AttentionLog::now();  // not before the creation of any of these LUNs
  if (lost || !forwarded) nexus->first_attention_ = lost ? kNexusLoss : kPowerOn;
  return nexus;
}

const MappedLun* Nexus::listed(uint64_t lun_field) const {
  uint64_t lun = 0;
  return scsi::lun_number(lun_field, &lun) ? find_lun(*luns_, lun) : nullptr;
}

Itl* Nexus::use(uint64_t lun_field) {
  if (Itl* itl = find(lun_field)) return itl;
  const MappedLun* lun = closed_ ? nullptr : listed(lun_field);
  return lun ? open_itl(*lun) : nullptr;
}

void Nexus::drop_if_unused(const Unit& unit, const char* why) {
  if (closed_ || !drop) return;
  const auto all = itls();
  const bool reached =
      std::ranges::any_of(*luns_, [&](const MappedLun& l) { return l.unit.get() == &unit; });
  const bool used = std::ranges::any_of(all, [&](const Itl* itl) { return &itl->unit() == &unit; });
  if (reached && !used) drop(why);
}

void Nexus::use_luns_of(const Unit& unit) {
  for (const MappedLun& lun : *luns_) {
    if (lun.unit.get() == &unit) use(scsi::lun_field(lun.lun));
  }
}

// Opens it with the attentions that it would have if it had existed since the session or the LUN
// began.
Itl* Nexus::open_itl(const MappedLun& lun) {
  const uint64_t since = std::max(opened_at_, lun.since);
  std::vector<UnitAttention> first;
  if (first_attention_ && lun.since <= opened_at_) first.push_back(*first_attention_);
  if (inventory_changed_) first.push_back(kInventoryChanged);
  // A host that may only read notices no change, because all LUNs are always protected for it.
  if (lun.protected_since > since && !read_only_) first.push_back(kModeParametersChanged);
  auto itl = std::make_shared<OpenItl>(lun.unit, shared_from_this(), *this, links_, lun.lun);
  // Not in the constructor: other users of the unit need weak_from_this(), which works only after
  // construction.
  lun.unit->attached().attach(*itl, first, since);
  itl->read_only = read_only_ || lun.read_only;
  Itl* opened = itl.get();
  itls_.add(std::move(itl));
  return opened;
}

bool Nexus::is_read_only(const Unit& unit) const {
  const auto all = itls();
  return std::ranges::any_of(
      all, [&](const Itl* itl) { return &itl->unit() == &unit && itl->read_only; });
}

std::vector<uint64_t> Nexus::lun_numbers() const {
  std::vector<uint64_t> numbers;
  numbers.reserve(luns_->size());
  for (const MappedLun& lun : *luns_) numbers.push_back(lun.lun);
  return numbers;
}

bool Nexus::begin(Command& command) {
  forget_last_answer(command);
  command.nexus = this;
  command.itl = itls_.find(command.lun_field);
  if (closed_) [[unlikely]] {
    command.itl = nullptr;
    command.abort = Abort::kSilent;
    finish_aborted(command);
    return false;
  }
  if (!command.itl) [[unlikely]] {
    command.itl = use(command.lun_field);
    if (!command.itl) {
      answer_without_unit(command);
      return false;
    }
  }
  Unit& unit = command.itl->unit();
  unit.statistics().shard(context_.reactor).begun.add(1);
  enter(*command.itl, command);
  return advance(unit, command) == Stage::kAwaitingData;
}

void Nexus::data_ready(Command& command) {
  if (command.stage != Stage::kAwaitingData) return;  // ended by abort()
  advance(command.itl->unit(), command);
}

void Nexus::abort(Command& command) { Itl::abort_command(command, false); }

bool Nexus::has_lun(uint64_t lun_field) const {
  return listed(lun_field) != nullptr || lun_field == scsi::kReportLunsWellKnownLun;
}

bool Nexus::peek_unit_attention(uint64_t lun_field, UnitAttention* out) {
  Itl* itl = use(lun_field);
  if (!itl || !itl->attention.load(std::memory_order_acquire)) return false;
  std::lock_guard lock(itl->unit().mutex());
  if (itl->pending.empty()) return false;
  *out = itl->pending.front();
  return true;
}

void Nexus::retire(const std::shared_ptr<Itl>& itl) {
  itl->removed = true;
  const bool busy = itl->drain(nullptr, [self = shared_from_this(), itl] {
    std::erase(self->retired_, itl);
    // Posted, so that it is not destroyed within the unit's own functions.
    self->context_.reactors->post(self->context_.reactor, [itl] {});
  });
  if (busy) retired_.push_back(itl);
}

// Hosts rely on the write protection in MODE SENSE until 2A/01 reports a change.
void Nexus::protect(Itl& itl, bool read_only) {
  if (std::exchange(itl.read_only, read_only) == read_only) return;
  itl.unit().attached().raise_for(itl, kModeParametersChanged);
}

void Nexus::refresh_luns() {
  if (closed_) return;
  const std::shared_ptr<const LunMap> before = std::exchange(luns_, target_->lun_map());
  const auto stays = [this](Itl& itl) {
    const MappedLun* lun = find_lun(*luns_, itl.lun());
    if (!lun || lun->unit.get() != &itl.unit()) return false;
    protect(itl, read_only_ || lun->read_only);
    return true;
  };
  itls_.remove_unless(stays, [this](const std::shared_ptr<Itl>& itl) { retire(itl); });
  const auto same = [](const MappedLun& a, const MappedLun& b) {
    return a.lun == b.lun && a.unit == b.unit && a.since == b.since;
  };
  if (std::ranges::equal(*before, *luns_, same)) return;
  inventory_changed_ = true;
  for (Itl* itl : itls()) itl->unit().attached().raise_for(*itl, kInventoryChanged);
}

void Nexus::inventory_reported() {
  inventory_changed_ = false;
  for (Itl* itl : itls()) itl->unit().attached().clear(*itl, kInventoryChanged);
}

// --- task management (SAM-5 §7) and the end of a nexus (§6.3)

bool Nexus::abort_task_set(uint64_t lun_field, std::function<void()> done) {
  Itl* itl = use(lun_field);
  if (!itl) return false;
  const Handle all = count_down_to(context_, std::move(done));
  const std::shared_ptr<Itl> alive = itl->shared_from_this();
  itl->abort_commands(false, nullptr);
  wait_for(*itl, all);
  abort_task_set_at_owner(itl->unit(), lun_field, all);
  all->through();
  return true;
}

// With one task set per I_T nexus (TST=001b) the set contains only this nexus's commands, so this
// equals ABORT TASK SET (SAM-5 §7.5), also at the owner. No other host gets 2F/00.
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

// Aborts the commands that the owner has of this nexus. If the owner changes, no other gateway is
// asked: this gateway also has all commands, and waits for each.
void Nexus::abort_task_set_at_owner(const Unit& unit, uint64_t lun_field,
                                    const std::shared_ptr<Countdown>& all) {
  const Role role = unit.role();
  if (role.standing != Standing::kForwarder) return;
  const std::shared_ptr<Link> link = links_.open_link(role.owner);
  if (!link) return;
  all->begin();
  // With or without an answer, no earlier command can reach a backend any more.
  link->function(LinkFunction::kAbortTaskSet, lun_field,
                 [all](bool /*answered*/) { all->through(); });
}

// SAM-5 §6.3.3: the condition is raised on every I_T nexus, including the requesting one. If
// another gateway is the owner, it aborts the commands of all nexuses and raises the condition on
// all (DESIGN R9).
void Nexus::reset_units(const LunMap& luns, std::function<void(bool)> done) {
  const auto at_owners = std::make_shared<bool>(true);  // used on this reactor only
  const Handle all =
      count_down_to(context_, [at_owners, done = std::move(done)] { done(*at_owners); });
  for (const MappedLun& lun : luns) {
    const std::shared_ptr<Unit>& unit = lun.unit;
    // Its own commands end now, not in a posted task, because the function must not affect later
    // ones (RFC 7143 §11.5.1).
    for (Itl* itl : itls()) {
      if (&itl->unit() != unit.get()) continue;
      const std::shared_ptr<Itl> alive = itl->shared_from_this();
      itl->abort_commands(false, nullptr);
      wait_for(*itl, all);
    }
    const Standing standing = unit->role().standing;
    if (forwarded_ && standing != Standing::kOwner) {
      *at_owners = false;  // its forwarder asks the owner, and may ask here many times before
      continue;
    }
    if (standing != Standing::kForwarder) {
      all->begin();
      reset_here(*this, unit, [all] { all->through(); });
    }
    if (standing == Standing::kOwner) continue;
    all->begin();
    follow_owner(lun, [all, at_owners](bool at_owner) {
      *at_owners = *at_owners && at_owner;
      all->through();
    });
  }
  all->through();
}

void Nexus::follow_owner(const MappedLun& lun, std::function<void(bool)> done) {
  std::vector<std::shared_ptr<Itl>> behind;
  if (!owner_resets_.full()) {
    // For every LUN of the unit, because they form one task set for the host.
    use_luns_of(*lun.unit);
    for (Itl* itl : itls()) {
      if (&itl->unit() == lun.unit.get()) behind.push_back(itl->shared_from_this());
    }
  }
  owner_resets_.add(lun.unit, lun.lun, std::move(behind), std::move(done));
}

void Nexus::close(bool lost, std::function<void()> done, std::function<void()> ended) {
  if (closed_) return context_.reactors->post(context_.reactor, std::move(done));
  closed_ = true;
  target_->remove(this);
  if (lost) target_->note_lost(id_);
  owner_resets_.clear();
  std::vector<std::shared_ptr<Itl>> mine = retired_;
  for (Itl* itl : itls()) mine.push_back(itl->shared_from_this());
  // `done` keeps the I_T_L nexuses and the LUNs alive until it runs from the event loop: the last
  // command may end within functions of a unit that only they keep alive.
  auto released = std::make_shared<Countdown>([self = shared_from_this(), mine, luns = luns_,
                                               done]() mutable {
    self->finish_close();
    // The links too: this may run within one of their functions.
    self->context_.reactors->post(
        self->context_.reactor, [self, mine = std::move(mine), luns = std::move(luns),
                                 links = self->links_.take(), done = std::move(done)] { done(); });
  });
  auto all = std::make_shared<Countdown>([this, released, ended = std::move(ended)]() mutable {
    release_reservations();
    if (ended) context_.reactors->post(context_.reactor, std::move(ended));
    released->through();
  });
  for (const std::shared_ptr<Itl>& itl : mine) itl->abort_commands(false, nullptr);
  for (const std::shared_ptr<Itl>& itl : mine) {
    wait_for(*itl, all);
    released->begin();
    if (!itl->drain(nullptr, [released] { released->through(); })) released->through();
  }
  for (auto& go_on : std::exchange(starved_, {})) {
    context_.reactors->post(context_.reactor, std::move(go_on));
  }
  links_.close(lost, [&all] { all->begin(); }, [all] { all->through(); });
  all->through();
}

// SAM-5 §6.3.4: RESERVE(6) ends with the nexus, persistent reservations stay. Not later: the next
// nexus of this id may have a reservation of its own.
void Nexus::release_reservations() {
  for (const MappedLun& lun : *luns_) {
    Unit& unit = *lun.unit;
    if (!(unit.gate() & Unit::kReserved)) continue;
    const std::lock_guard lock(unit.mutex());
    unit.reservations().release6(id_);
    unit.reservations_changed();
  }
}

void Nexus::finish_close() {
  for (Itl* itl : itls()) itl->unit().attached().detach(itl);
  luns_ = std::make_shared<LunMap>();
  itls_.clear();
  retired_.clear();
}

void Nexus::resume_held(Itl& itl) {
  if (itl.resuming) return;
  const std::shared_ptr<Itl> alive = itl.shared_from_this();
  if (itl.resets != 0) owner_resets_.on_role_change(itl.unit());
  resume(itl);
}

void Nexus::detach_overdue() {
  const std::shared_ptr<Nexus> alive = shared_from_this();
  std::vector<std::shared_ptr<Itl>> all = retired_;
  for (Itl* itl : itls()) all.push_back(itl->shared_from_this());
  aborting = false;
  for (const auto& itl : all) {
    if (itl->detach_overdue()) aborting = true;
  }
}

void Nexus::tick() {
  if (aborting) detach_overdue();
  if ((held == 0 && starved_.empty() && owner_resets_.empty()) || closed_) return;
  const std::shared_ptr<Nexus> alive = shared_from_this();
  owner_resets_.tick();
  for (const auto& go_on : std::exchange(starved_, {})) go_on();
  std::vector<std::shared_ptr<Itl>> all = retired_;
  for (Itl* itl : itls()) all.push_back(itl->shared_from_this());
  for (const auto& itl : all) {
    if (itl->held == 0) continue;
    resume_held(*itl);
    end_overdue(*itl);
  }
}

}  // namespace sluice::lun
