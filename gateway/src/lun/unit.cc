#include "lun/unit.h"

#include <algorithm>

#include "base/limits.h"
#include "lun/attention_log.h"
#include "lun/bandwidth.h"
#include "lun/ranges/range_table.h"
#include "lun/reservations/reservations.h"
#include "lun/statistics.h"
#include "lun/unopened.h"

namespace sluice::lun {
namespace {

uint32_t saturated(uint64_t v) { return static_cast<uint32_t>(std::min<uint64_t>(v, UINT32_MAX)); }

// Shown in VPD B0 and enforced by the handlers.
scsi::BlockLimits limits_of(const UnitIdentity& identity, const backend::Info& info, bool unmap) {
  const uint32_t block = identity.block_size;
  scsi::BlockLimits l;
  // Writing one pattern over everything could outlast any host's patience: at most so much a time,
  // so that 0 for "the rest of the medium" could not be honoured on most volumes.
  l.write_same_non_zero = true;
  l.max_write_same = limits::kMaxWriteSameBytes / block;
  l.max_compare_and_write = limits::kMaxCompareAndWriteBlocks;
  l.optimal_granularity = static_cast<uint16_t>(std::max(1u, identity.physical_block_size / block));
  l.max_transfer = limits::kMaxTransferBytes / block;
  l.optimal_transfer = limits::kOptimalTransferBytes / block;
  if (unmap) {
    l.max_unmap_blocks = saturated(limits::kMaxUnmapBytes / block);
    l.max_unmap_descriptors = limits::kMaxUnmapDescriptors;
    l.unmap_granularity = std::max(1u, info.discard_granularity / block);
    l.unmap_alignment_valid = true;
    l.unmap_alignment = static_cast<uint32_t>(info.discard_alignment / block);
  }
  // SBC-4 §4.29, VPD B0: one size, at multiples of itself (backend/atomic_write.h says why).
  if (info.atomic_write_bytes >= block && info.atomic_write_bytes <= limits::kMaxTransferBytes) {
    const uint32_t atomic = info.atomic_write_bytes / block;
    l.max_atomic_transfer = l.atomic_alignment = l.atomic_granularity = atomic;
  }
  return l;
}

}  // namespace

Unit::Unit(UnitIdentity identity, std::unique_ptr<backend::Backend> backend, unsigned reactors,
           std::shared_ptr<ReservationStore> store)
    : identity_(std::move(identity)),
      backend_(std::move(backend)),
      store_(std::move(store)),
      default_write_cache_(backend_->write_cache()),
      bandwidth_(std::make_unique<Bandwidth>()),
      attentions_(std::make_unique<AttentionLog>()),
      // 4 KiB is what most commands keep to.
      ranges_(std::make_shared<RangeTable>(reactors, identity_.block_size >= 4096 ? 0 : 3)),
      reservations_(std::make_unique<Reservations>()),
      statistics_(std::make_unique<UnitStatistics>(reactors)) {
  take_info_locked();
}

Unit::Unit(UnitIdentity identity, Shape shape, unsigned reactors)
    : Unit(std::move(identity), std::make_unique<Unopened>(shape, backend::Info()), reactors,
           nullptr) {
  opened_ = false;
  placed_ = false;
  role_.standing = Standing::kTransitioning;
  raise_gate(kElsewhere);
}

Unit::~Unit() = default;

bool Unit::read_only() const { return gate() & kWriteProtected; }

std::string Unit::uuid_text() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < identity_.uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kDigits[identity_.uuid[i] >> 4];
    text += kDigits[identity_.uuid[i] & 15];
  }
  return text;
}

Result<void> Unit::resize(uint64_t bytes) {
  // A device that "is whatever it is now" may have grown by any number of bytes.
  if (bytes % identity_.block_size != 0) {
    return Error{"size " + std::to_string(bytes) + " is not a multiple of the block size " +
                 std::to_string(identity_.block_size)};
  }
  const auto backend = shared_backend();
  if (auto grown = backend->resize(bytes); !grown) return grown;
  const uint64_t blocks = backend->size_bytes() / identity_.block_size;
  if (blocks_.exchange(blocks, std::memory_order_acq_rel) != blocks) {
    raise_attention(kCapacityChanged, nullptr);
  }
  return {};
}

// What the backend says of the medium, and what follows from it.
void Unit::take_info_locked() {
  const backend::Info& info = backend_->info();
  blocks_ = backend_->size_bytes() / identity_.block_size;
  support_.unmap = info.thin && info.discard_granularity != 0;
  limits_ = limits_of(identity_, info, support_.unmap);
  support_.write_atomic = limits_.max_atomic_transfer != 0;
  support_.pass_through = info.takes_cdbs;
  if (info.read_only) {
    raise_gate(kWriteProtected);
  } else {
    lower_gate(kWriteProtected);
  }
}

void Unit::update_ready_locked() {
  if (medium_gone_ || stopped_.load(std::memory_order_relaxed)) {
    raise_gate(kNotReady);
  } else {
    lower_gate(kNotReady);
  }
}

void Unit::poll_health() {
  const auto backend = shared_backend();
  const bool gone = !backend->check().ok();
  const std::lock_guard lock(mutex_);
  if (backend == backend_) take_health_locked(gone);  // else it was closed meanwhile
}

void Unit::take_health_locked(bool gone) {
  medium_gone_ = gone;
  update_ready_locked();
  // Somebody else may have made it larger (an image of Ceph).
  const uint64_t now = backend_->size_bytes() / identity_.block_size;
  if (now > blocks_.load(std::memory_order_relaxed)) {
    blocks_.store(now, std::memory_order_release);
    raise_attention_locked(kCapacityChanged, nullptr);
  }
}

void Unit::medium_lost() {
  std::lock_guard lock(mutex_);
  medium_gone_ = true;
  update_ready_locked();
}

void Unit::set_stopped(bool stopped) {
  std::lock_guard lock(mutex_);
  stopped_.store(stopped, std::memory_order_relaxed);
  update_ready_locked();
}

Unit::ModeParameters Unit::mode() const {
  std::lock_guard lock(mutex_);
  return mode_;
}

void Unit::set_mode(ModeParameters mode) {
  std::lock_guard lock(mutex_);
  mode_ = mode;
  descriptor_sense_.store(mode.descriptor_sense, std::memory_order_relaxed);
  if (mode.software_write_protect || backend_->info().read_only) {
    raise_gate(kWriteProtected);
  } else {
    lower_gate(kWriteProtected);
  }
}

}  // namespace sluice::lun
