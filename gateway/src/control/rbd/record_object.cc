#include "control_rbd/record_object.h"

#include <utility>

#include "base/limits.h"
#include "base/log.h"

namespace sluice::control {
namespace {

// A record at its largest: reservations, and what is around them.
constexpr size_t kMaxBytes = limits::kMaxReservationState + (size_t{1} << 20);
constexpr size_t kMostBytes = 64 << 10;  // of nearly every record
constexpr int kTries = 3;

}  // namespace

RecordObject::RecordObject(std::shared_ptr<rbd::Pool> pool, const std::string& volume)
    : volume_(volume), object_(std::move(pool), "sluice.volume." + volume) {}

Result<RecordObject::Found> RecordObject::find() {
  Result<RadosObject::Found> object = object_.read(kMostBytes, kMaxBytes);
  if (!object) return Error{object.error()};
  Found found{{}, std::move(object).value()};
  if (!found.object.text) return found;
  Result<Record> record = parse_record(*found.object.text, volume_, object_.shown());
  if (record) {
    found.record = std::move(record).value();
    return found;
  }
  if (!found.object.copy) return Error{record.error()};
  Result<Record> copy = parse_record(*found.object.copy, volume_, object_.shown());
  if (!copy) return Error{record.error()};
  log::warning("the record of a volume is damaged; its copy is used",
               {{"volume", volume_}, {"reason", record.error()}});
  found.record = std::move(copy).value();
  found.record->reservations_known = false;
  return found;
}

Result<bool> RecordObject::replace(const Found& found, const Record& record) {
  return object_.replace(found.object, format_record(record));
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
      return Error{object_.shown() + " is of epoch " + std::to_string(present->epoch) +
                   ", newer than the order's " + std::to_string(record.epoch)};
    }
    const Result<bool> replaced = replace(found.value(), record);
    if (!replaced) return Error{replaced.error()};
    if (replaced.value()) return {};
  }
  return Error{object_.shown() +
               " is being written by others; only the owner of its image may do that"};
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
  return Error{object_.shown() + " is another gateway's by now"};
}

Result<void> RecordObject::remove() { return object_.remove(); }

}  // namespace sluice::control
