#include "lun/nexus.h"

#include <algorithm>

#include "base/limits.h"
#include "lun/attention_log.h"
#include "lun/commands/handler.h"
#include "lun/execution.h"
#include "lun/exports.h"
#include "lun/forwarding.h"
#include "lun/gate.h"
#include "lun/placing.h"
#include "lun/reservations/reservations.h"
#include "lun/routing.h"
#include "lun/statistics.h"
#include "lun/task_set.h"
#include "scsi/report_luns.h"

namespace sluice::lun {
namespace {

constexpr UnitAttention kPowerOn{0x29, 0x00};    // POWER ON, RESET, OR BUS DEVICE RESET
constexpr UnitAttention kNexusLoss{0x29, 0x07};  // I_T NEXUS LOSS OCCURRED
constexpr UnitAttention kModeParametersChanged{0x2a, 0x01};
constexpr UnitAttention kInventoryChanged{0x3f, 0x0e};  // REPORTED LUNS DATA HAS CHANGED

void forget_last_answer(Command& command) {
  command.status = scsi::Status::kGood;
  command.aborted = false;
  command.task_aborted_status = false;
  command.drops_nexus = command.stale = command.not_owner = false;
  command.prepared = command.submitted = false;
  command.held_since = -1;
  command.sense_size = 0;
  command.data_in_size = 0;
  command.data_in.clear();
  command.data_out_wanted = 0;
  command.data_out_size = 0;
  command.info = nullptr;
  command.wants_hold = false;
  command.cleanup = nullptr;
  command.stage = Command::Stage::kRunning;
}

// What every borrower of a unit's memory refers to.
struct Loan final : Buffer {
  std::shared_ptr<Unit> unit;
  std::shared_ptr<backend::Backend> backend;
};

BufferRef lend(std::shared_ptr<Unit> unit, std::shared_ptr<backend::Backend> backend) {
  auto loan = std::make_unique<Loan>();
  loan->unit = std::move(unit);
  loan->backend = std::move(backend);
  loan->returned = [](Buffer& b) { std::default_delete<Loan>()(static_cast<Loan*>(&b)); };
  return BufferRef(loan.release());
}

}  // namespace

Itl::Itl(std::shared_ptr<Unit> unit, std::shared_ptr<Nexus> nexus, uint64_t lun)
    : unit_(std::move(unit)), nexus_(std::move(nexus)), lun_(lun), loan_(lend(unit_, nullptr)) {}

// Not in the constructor: the unit's other users take references to it (weak_from_this), which can
// be had only of one that is made.
std::shared_ptr<Itl> Itl::open(const std::shared_ptr<Unit>& unit,
                               const std::shared_ptr<Nexus>& nexus, uint64_t lun,
                               const std::vector<UnitAttention>& first, uint64_t since) {
  auto itl = std::make_shared<Itl>(unit, nexus, lun);
  unit->attach(*itl, first, since);
  return itl;
}

Itl::~Itl() { unit_->detach(this); }

const BufferRef& Itl::backend_loan() {
  if (!backend_loan_ || lender_ != &unit_->backend()) [[unlikely]] {
    lender_ = &unit_->backend();
    backend_loan_ = lend(unit_, unit_->shared_backend());
  }
  return backend_loan_;
}

Nexus::Nexus(std::shared_ptr<Target> target, NexusId id, Lane lane)
    : id_(std::move(id)),
      lane_(lane),
      target_(std::move(target)),
      luns_(std::make_shared<LunMap>()) {}

Nexus::~Nexus() = default;

std::shared_ptr<Nexus> Nexus::open(std::shared_ptr<Target> target, NexusId id, Lane lane,
                                   bool read_only, std::optional<Nanos> forwarded) {
  std::shared_ptr<Nexus> nexus(new Nexus(std::move(target), std::move(id), lane));
  nexus->read_only_ = read_only;
  nexus->forwarded_ = forwarded.has_value();
  nexus->host_since_ = *nexus->lane_.now;
  if (forwarded) nexus->host_since_ -= *forwarded + limits::host_age_slack(*forwarded);
  const bool lost = nexus->target_->take_lost(nexus->id_);
  // Known to the target before its LUNs are read: a change in between then reaches the nexus.
  nexus->target_->add(nexus);
  nexus->luns_ = nexus->target_->lun_map();
  nexus->opened_at_ = AttentionLog::now();  // not before any of these LUNs was there
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

bool Nexus::reaches_unused(const Unit& unit) const {
  const auto all = itls();
  return std::ranges::any_of(*luns_, [&](const MappedLun& l) { return l.unit.get() == &unit; }) &&
         std::ranges::none_of(all, [&](const Itl* itl) { return &itl->unit() == &unit; });
}

void Nexus::use_luns_of(const Unit& unit) {
  for (const MappedLun& lun : *luns_) {
    if (lun.unit.get() == &unit) use(scsi::lun_field(lun.lun));
  }
}

// As it would be had it been there since the session began, or since the LUN came.
Itl* Nexus::open_itl(const MappedLun& lun) {
  const uint64_t since = std::max(opened_at_, lun.since);
  std::vector<UnitAttention> first;
  if (first_attention_ && lun.since <= opened_at_) first.push_back(*first_attention_);
  if (inventory_changed_) first.push_back(kInventoryChanged);
  // Protected from everything all the time, a host that may only read notices no change.
  if (lun.protected_since > since && !read_only_) first.push_back(kModeParametersChanged);
  auto itl = Itl::open(lun.unit, shared_from_this(), lun.lun, first, since);
  itl->read_only = read_only_ || lun.read_only;
  Itl* opened = itl.get();
  place(std::move(itl));
  return opened;
}

void Nexus::place(std::shared_ptr<Itl> itl) {
  const uint64_t lun = itl->lun();
  if (lun < low_.size()) {
    low_[lun] = std::move(itl);
    return;
  }
  const auto at = std::lower_bound(high_.begin(), high_.end(), lun,
                                   [](const auto& entry, uint64_t l) { return entry.first < l; });
  high_.insert(at, {lun, std::move(itl)});
}

Itl* Nexus::find(uint64_t lun_field) const {
  uint64_t lun = 0;
  if (!scsi::lun_number(lun_field, &lun)) return nullptr;
  if (lun < low_.size()) [[likely]]
    return low_[lun].get();
  const auto at = std::lower_bound(high_.begin(), high_.end(), lun,
                                   [](const auto& entry, uint64_t l) { return entry.first < l; });
  return at != high_.end() && at->first == lun ? at->second.get() : nullptr;
}

std::vector<Itl*> Nexus::itls() const {
  std::vector<Itl*> all;
  for (const auto& itl : low_) {
    if (itl) all.push_back(itl.get());
  }
  for (const auto& [lun, itl] : high_) all.push_back(itl.get());
  return all;
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
  command.itl = find(command.lun_field);
  if (closed_) [[unlikely]] {
    command.itl = nullptr;
    command.aborted = true;
    finish_aborted(command);
    return false;
  }
  if (!command.itl) [[unlikely]] {
    command.itl = use(command.lun_field);
    if (!command.itl) {
      answer_without_unit(*this, command);
      return false;
    }
  }
  Unit& unit = command.itl->unit();
  unit.statistics().lane(lane_.reactor).begun.add(1);
  enter(*command.itl, command);
  const uint64_t word = unit.gate_word();
  if ((word & Unit::kDetour) || command.itl->held != 0) [[unlikely]] {
    return begin_by_detour(unit, command);
  }
  if (!look_at(unit, command, word)) return false;
  if (command.data_out_wanted != 0 && command.expected_data_out != 0) {
    command.stage = Command::Stage::kAwaitingData;
    return true;
  }
  dispatch(unit, command);
  return false;
}

void Nexus::data_ready(Command& command) {
  if (command.stage != Command::Stage::kAwaitingData) return;  // ended by abort()
  Unit& unit = command.itl->unit();
  command.stage = Command::Stage::kRunning;
  const uint64_t word = unit.gate_word();
  if ((word & Unit::kDetour) || command.itl->held != 0 || !command.prepared || command.epoch != 0)
      [[unlikely]] {
    return lun::place(unit, command);
  }
  if (still_passes(unit, command, word)) dispatch(unit, command);
}

void Nexus::abort(Command& command) { abort_command(command, false); }

bool Nexus::has_lun(uint64_t lun_field) const {
  return listed(lun_field) != nullptr || lun_field == scsi::kReportLunsWellKnownLun;
}

bool Nexus::peek_unit_attention(uint64_t lun_field, UnitAttention* out) {
  const Itl* itl = use(lun_field);
  if (!itl || !itl->attention.load(std::memory_order_acquire)) return false;
  std::lock_guard lock(itl->unit().mutex());
  if (itl->pending.empty()) return false;
  *out = itl->pending.front();
  return true;
}

void Nexus::retire(const std::shared_ptr<Itl>& itl) {
  itl->removed = true;
  const bool busy = drain(*itl, nullptr, [self = shared_from_this(), itl] {
    std::erase(self->retired_, itl);
    // Let go of at the top of the stack, not underneath the unit's own functions.
    self->lane_.reactors->post(self->lane_.reactor, [itl] {});
  });
  if (busy) retired_.push_back(itl);
}

// Hosts keep what MODE SENSE said of write protection until they are told.
void Nexus::protect(Itl& itl, bool read_only) {
  if (std::exchange(itl.read_only, read_only) == read_only) return;
  itl.unit().raise_attention_for(itl, kModeParametersChanged);
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
  for (auto& itl : low_) {
    if (itl && !stays(*itl)) retire(std::exchange(itl, nullptr));
  }
  std::erase_if(high_, [&](const auto& entry) {
    if (stays(*entry.second)) return false;
    retire(entry.second);
    return true;
  });
  const auto same = [](const MappedLun& a, const MappedLun& b) {
    return a.lun == b.lun && a.unit == b.unit && a.since == b.since;
  };
  if (std::ranges::equal(*before, *luns_, same)) return;
  inventory_changed_ = true;
  for (Itl* itl : itls()) itl->unit().raise_attention_for(*itl, kInventoryChanged);
}

void Nexus::inventory_reported() {
  inventory_changed_ = false;
  for (Itl* itl : itls()) itl->unit().clear_attention(*itl, kInventoryChanged);
}

}  // namespace sluice::lun
