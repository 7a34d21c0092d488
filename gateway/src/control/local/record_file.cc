#include "control/local/record_file.h"

#include "base/limits.h"
#include "control/local/record_files.h"

namespace sluice::control {
namespace {

// Whether a slot can hold all changes. The unsynced slot takes a new holder; a synced one takes a
// new epoch, or an order of the same holder in the same epoch.
bool fits_a_slot(const Record& record, const Record& next, Outlasts outlasts) {
  const bool synced = outlasts == Outlasts::kPowerCut;
  if (age_of(next) < age_of(record) || next.holder.boot_id.empty()) return false;
  if (synced && next.epoch == record.epoch && next.holder != record.holder) return false;
  Record claimed = record;
  claimed.holder = next.holder;
  claimed.order = next.order;
  if (synced) claimed.epoch = next.epoch;
  return claimed == next;
}

}  // namespace

RecordFile::RecordFile(int directory, std::string volume, std::string shown)
    : directory_(directory),
      volume_(std::move(volume)),
      shown_(std::move(shown)),
      slots_(directory_, volume_, shown_) {}

Result<RecordFile::Text> RecordFile::text_in(const char* file) const {
  const Result<std::optional<std::string>> text =
      read_small_file(directory_, volume_ + file, limits::kMaxVolumeRecord, shown_);
  if (!text) return Error{text.error()};
  if (!text.value()) return Text();
  Result<Record> record = parse_record(*text.value(), volume_, shown_);
  if (!record) return Text{.exists = true, .problem = record.error()};
  return Text{.exists = true, .record = std::move(record).value()};
}

Result<RecordFile::Present> RecordFile::present(ClaimSlots::For purpose) const {
  const Result<Text> text = text_in(kRecordFile);
  if (!text) return Error{text.error()};
  const Result<Text> copy = text_in(kCopyFile);
  if (!copy) return Error{copy.error()};
  const auto& [exists, record, problem] = text.value();
  if (!exists && !copy.value().exists) return Present();
  Result<std::optional<ClaimSlots::Found>> slots = slots_.find(purpose);
  if (!slots) return Error{slots.error()};
  Present present{.incomplete = !record || copy.value().record != record};
  if (record) {
    present.record = record;
  } else {
    present.record = copy.value().record;
    if (!present.record && !(slots.value() && slots.value()->has_any())) {
      return Error{exists ? problem : copy.value().problem};
    }
    if (!present.record) present.record.emplace().volume = volume_;
    present.record->reservations_known = false;
  }
  const Result<void> brought_up = slots_.bring_up(slots.value(), &*present.record);
  if (!brought_up) return Error{brought_up.error()};
  present.slots = std::move(slots).value();
  return present;
}

Result<std::optional<Record>> RecordFile::read() const {
  Result<Present> found = present(ClaimSlots::For::kReading);
  if (!found) return Error{found.error()};
  return std::move(found.value().record);
}

// Writers of the record exclude each other with this lock, independent of other locks.
Result<FileDescriptor> RecordFile::guard() const {
  return guard_file(directory_, volume_ + kGuardFile, shown_, kSecond);
}

// The copy is written first: it is never older than the record, unless an earlier release wrote the
// record.
Result<void> RecordFile::write(const Record& record) const {
  const std::string text = format_record(record);
  Result<void> written = replace_file(directory_, volume_ + kCopyFile, text, shown_);
  if (!written) return written;
  return replace_file(directory_, volume_ + kRecordFile, text, shown_);
}

// Unknown reservations are not written; the old text stays until an owner has them.
Result<void> RecordFile::note_in_doubt(const Record& record, bool slots_exist) const {
  Result<void> made = slots_exist ? Result<void>() : slots_.clear();
  if (!made) return made;
  const Result<bool> noted = note(record);
  if (!noted) return Error{noted.error()};
  return {};
}

// For a caller that has just written the record, possibly with new slots.
Result<bool> RecordFile::note(const Record& record) const {
  const Result<std::optional<ClaimSlots::Found>> slots = slots_.find(ClaimSlots::For::kWriting);
  if (!slots) return Error{slots.error()};
  return slots_.write(record, Outlasts::kProcess, slots.value());
}

Result<void> RecordFile::claim(const Record& record, Outlasts outlasts) const {
  const Result<FileDescriptor> guarded = guard();
  if (!guarded) return Error{guarded.error()};
  const Result<Present> found = present(ClaimSlots::For::kWriting);
  if (!found) return Error{found.error()};
  const auto& [present, slots, incomplete] = found.value();
  if (present && present->epoch > record.epoch) {
    return Error{shown_ + " is of epoch " + std::to_string(present->epoch) +
                 ", newer than the order's " + std::to_string(record.epoch)};
  }
  const bool for_good = outlasts == Outlasts::kPowerCut;
  if (!record.reservations_known) {
    if (for_good) return Error{shown_ + " is damaged, and the reservations are not known yet"};
    return note_in_doubt(record, slots.has_value());
  }
  const bool repairs = incomplete && for_good;
  if (present && !repairs && fits_a_slot(*present, record, outlasts)) {
    const Result<bool> in_slot = slots_.write(record, outlasts, slots);
    if (!in_slot) return Error{in_slot.error()};
    if (in_slot.value()) return {};
  }
  // Slots without a record belong to a record that was removed.
  Result<void> cleared = present ? Result<void>() : slots_.clear();
  if (!cleared) return cleared;
  Result<void> written = write(record);
  if (!written) return written;
  // No slot may contradict the record, for example one of the same age with the former holder.
  const Result<bool> noted = present && age_of(record) < age_of(*present) ? false : note(record);
  if (!noted) return Error{noted.error()};
  return noted.value() ? Result<void>() : slots_.clear();
}

Result<void> RecordFile::update(const Record& record) const {
  const Result<FileDescriptor> guarded = guard();
  if (!guarded) return Error{guarded.error()};
  const Result<std::optional<Record>> present = read();
  if (!present) return Error{present.error()};
  if (!present.value() || present.value()->holder != record.holder ||
      present.value()->epoch != record.epoch) {
    return Error{shown_ + " is another gateway's by now"};
  }
  return write(record);
}

}  // namespace sluice::control
