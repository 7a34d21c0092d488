#include "control_rbd/record_object.h"

#include <cerrno>
#include <utility>

#include "backend/failure.h"
#include "base/limits.h"

namespace sluice::control {
namespace {

// A record at its largest: reservations, and what is around them.
constexpr size_t kMaxBytes = limits::kMaxReservationState + (size_t{1} << 20);
constexpr size_t kMostBytes = 64 << 10;  // of nearly every record
constexpr int kTries = 3;

}  // namespace

RecordObject::RecordObject(std::shared_ptr<rbd::Pool> pool, const std::string& volume)
    : pool_(std::move(pool)),
      volume_(volume),
      object_("sluice.volume." + volume),
      shown_(pool_->name() + ": object " + object_) {}

Error RecordObject::failed(const std::string& what, int r) const {
  return backend::fail(shown_, what + ": " + rbd::ceph_error(r),
                       "check the pool and the user's rights to it");
}

Result<RecordObject::Found> RecordObject::find() {
  std::string text(kMostBytes, '\0');
  int r = rados_read(pool_->context(), object_.c_str(), text.data(), text.size(), 0);
  if (r == static_cast<int>(text.size())) {
    text.resize(kMaxBytes);
    r = rados_read(pool_->context(), object_.c_str(), text.data(), text.size(), 0);
  }
  if (r == -ENOENT) return Found();
  if (r < 0) return failed("can't be read", r);
  text.resize(static_cast<size_t>(r));
  Result<Record> record = parse_record(text, volume_, shown_);
  if (!record) return Error{record.error()};
  return Found{std::move(record).value(), rados_get_last_version(pool_->context())};
}

Result<bool> RecordObject::replace(const Found& found, const Record& record) {
  const std::string text = format_record(record);
  const rados_write_op_t op = rados_create_write_op();
  if (found.record) {
    rados_write_op_assert_version(op, found.version);
  } else {
    rados_write_op_create(op, LIBRADOS_CREATE_EXCLUSIVE, nullptr);
  }
  rados_write_op_write_full(op, text.data(), text.size());
  const int r = rados_write_op_operate(op, pool_->context(), object_.c_str(), nullptr, 0);
  rados_release_write_op(op);
  if (r == 0) return true;
  if (r == -ERANGE || r == -EOVERFLOW || r == -EEXIST || r == -ENOENT) return false;
  return failed("can't be written", r);
}

Result<std::optional<Record>> RecordObject::read() {
  Result<Found> found = find();
  if (!found) return Error{found.error()};
  read_ = found.value();
  return std::move(found.value().record);
}

Result<void> RecordObject::claim(const Record& record) {
  for (int i = 0; i < kTries; ++i) {
    // What was read when the image was opened is there still, or can't be replaced.
    const Result<Found> found = read_ ? Result<Found>(*std::exchange(read_, std::nullopt)) : find();
    if (!found) return Error{found.error()};
    const std::optional<Record>& present = found.value().record;
    if (present && present->epoch > record.epoch) {
      return Error{shown_ + " is of epoch " + std::to_string(present->epoch) +
                   ", newer than the order's " + std::to_string(record.epoch)};
    }
    const Result<bool> replaced = replace(found.value(), record);
    if (!replaced) return Error{replaced.error()};
    if (replaced.value()) return {};
  }
  return Error{shown_ + " is being written by others; only the owner of its image may do that"};
}

Result<void> RecordObject::update(const Record& record) {
  const Result<Found> found = find();
  if (!found) return Error{found.error()};
  const std::optional<Record>& present = found.value().record;
  const bool ours = present && present->holder == record.holder && present->epoch == record.epoch;
  if (ours) {
    const Result<bool> replaced = replace(found.value(), record);
    if (!replaced) return Error{replaced.error()};
    if (replaced.value()) return {};
  }
  return Error{shown_ + " is another gateway's by now"};
}

Result<void> RecordObject::remove() {
  const int r = rados_remove(pool_->context(), object_.c_str());
  if (r == 0 || r == -ENOENT) return {};
  return failed("can't be removed", r);
}

}  // namespace sluice::control
