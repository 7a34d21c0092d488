#include "control/local/record_file.h"

#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "base/limits.h"
#include "base/log.h"
#include "base/record_text.h"
#include "control/local/record_files.h"
#include "control/local/space_reserve.h"

namespace sluice::control {
namespace {

constexpr std::string_view kAbsent = "absent";  // instead of a checksum

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
      slots_(directory_, volume_, shown_),
      record_slots_(directory_, volume_, shown_) {}

Result<RecordFile::Text> RecordFile::text_in(const char* file) const {
  const Result<std::optional<std::string>> text =
      read_small_file(directory_, volume_ + file, limits::kMaxVolumeRecord, shown_);
  if (!text) return Error{text.error()};
  if (!text.value()) return Text();
  Text found{.exists = true, .checksum = checksum_text(*text.value())};
  Result<Record> record = parse_record(*text.value(), volume_, shown_);
  if (record) {
    found.record = std::move(record).value();
  } else {
    found.problem = record.error();
  }
  return found;
}

// The record in the newest slot counts if `.volume` has not been replaced since.
RecordFile::Present RecordFile::newest_of(Text text, Text copy,
                                          std::optional<RecordSlots::Found> slots) {
  const RecordSlots::Slot* slot = slots ? slots->newest() : nullptr;
  Present present{.checksum = text.exists ? text.checksum : std::string(kAbsent),
                  .incomplete = !text.record || copy.record != text.record};
  if (slot && text.record && slot->replaces == present.checksum) {
    present.incomplete = present.incomplete || slot->record != text.record;
    present.record = slot->record;
  } else if (text.record) {
    present.record = std::move(text.record);
  } else {
    present.record = std::move(copy.record);
    if (slot && (!present.record || age_of(*present.record) < age_of(slot->record))) {
      present.record = slot->record;
    }
    if (present.record) present.record->reservations_known = false;
  }
  if (slots && slots->damaged) {
    present.incomplete = true;
    if (present.record) present.record->reservations_known = false;
  }
  present.record_slots = std::move(slots);
  return present;
}

Result<RecordFile::Present> RecordFile::present(ClaimSlots::For purpose) const {
  Result<Text> text = text_in(kRecordFile);
  if (!text) return Error{text.error()};
  Result<Text> copy = text_in(kCopyFile);
  if (!copy) return Error{copy.error()};
  if (!text.value().exists && !copy.value().exists) return Present();
  const std::string problem = text.value().exists ? text.value().problem : copy.value().problem;
  Result<std::optional<RecordSlots::Found>> newest = record_slots_.find();
  if (!newest) return Error{newest.error()};
  Result<std::optional<ClaimSlots::Found>> slots = slots_.find(purpose);
  if (!slots) return Error{slots.error()};
  Present present =
      newest_of(std::move(text).value(), std::move(copy).value(), std::move(newest).value());
  if (!present.record) {
    if (!(slots.value() && slots.value()->has_any())) return Error{problem};
    present.record.emplace().volume = volume_;
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

// The copy is written before `.volume`: it is never older, unless an earlier release wrote
// `.volume`. If the slot has the record, it is stored, and the two files may fail.
Result<void> RecordFile::write(const Record& record, const Present& present) const {
  const std::string text = format_record(record);
  // Slots without a record belong to a record that was removed.
  Result<bool> in_slot = false;
  if (present.record) {
    in_slot = record_slots_.write(text, present.checksum, present.record_slots);
  }
  if (!in_slot) return Error{in_slot.error()};
  Result<void> written = replace_file(directory_, volume_ + kCopyFile, text, shown_);
  if (written) written = replace_file(directory_, volume_ + kRecordFile, text, shown_);
  if (written && !in_slot.value()) return refresh_slots(text, present);
  if (written || !in_slot.value()) return written;
  log::warning("a record is only in its slot; an earlier release would read an older one",
               {{"record", shown_}, {"error", written.error()}});
  return {};
}

// For a caller that has just replaced `.volume` without a slot: there are none yet, they are of a
// removed record, or the record is too large for them. Later changes are refused if there is no
// room, so an error is ignored unless old slots may contradict the record.
Result<void> RecordFile::refresh_slots(std::string_view text, const Present& present) const {
  if (!present.record && ::unlinkat(directory_, (volume_ + kSlotsFile).c_str(), 0) != 0 &&
      errno != ENOENT) {
    return Error{"can't delete the slots beside " + shown_ + ": " + reason_of(errno)};
  }
  const Result<bool> reserved =
      record_slots_.reserve(text.size(), present.record ? present.record_slots : std::nullopt);
  if (!reserved || !reserved.value()) {
    log::warning("no room for later changes of a record",
                 {{"record", shown_}, {"error", reserved ? "the pool is full" : reserved.error()}});
  }
  return {};
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

// Only the first claim of a volume needs free space.
Result<void> RecordFile::claim(const Record& record, Outlasts outlasts) const {
  errno = 0;
  Result<void> claimed = try_claim(record, outlasts);
  if (claimed || !is_out_of_space(errno) || !release_reserve(directory_)) return claimed;
  claimed = try_claim(record, outlasts);
  keep_reserve(directory_);
  return claimed;
}

Result<void> RecordFile::try_claim(const Record& record, Outlasts outlasts) const {
  const Result<FileDescriptor> guarded = guard();
  if (!guarded) return Error{guarded.error()};
  const Result<Present> found = present(ClaimSlots::For::kWriting);
  if (!found) return Error{found.error()};
  const std::optional<Record>& present = found.value().record;
  const std::optional<ClaimSlots::Found>& slots = found.value().slots;
  const bool incomplete = found.value().incomplete;
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
  Result<void> written = write(record, found.value());
  if (!written) return written;
  // No slot may contradict the record, for example one of the same age with the former holder.
  const Result<bool> noted = present && age_of(record) < age_of(*present) ? false : note(record);
  if (!noted) return Error{noted.error()};
  if (noted.value()) return {};
  Result<void> cleared_too = slots_.clear();
  // Without slots nothing contradicts the record; a full pool has no room for them.
  return slots ? cleared_too : Result<void>();
}

Result<void> RecordFile::update(const Record& record) const {
  const Result<FileDescriptor> guarded = guard();
  if (!guarded) return Error{guarded.error()};
  const Result<Present> found = present(ClaimSlots::For::kReading);
  if (!found) return Error{found.error()};
  const std::optional<Record>& present = found.value().record;
  if (!present || present->holder != record.holder || present->epoch != record.epoch) {
    return Error{shown_ + " is another gateway's by now"};
  }
  return write(record, found.value());
}

Result<bool> RecordFile::reserve(const Record& record) const {
  const Result<FileDescriptor> guarded = guard();
  if (!guarded) return Error{guarded.error()};
  const Result<std::optional<RecordSlots::Found>> slots = record_slots_.find();
  if (!slots) return Error{slots.error()};
  return record_slots_.reserve(format_record(record).size(), slots.value());
}

}  // namespace sluice::control
