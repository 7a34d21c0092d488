#include "control/local/claim_slots.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "control/local/record_files.h"

namespace sluice::control {
namespace {

constexpr size_t kSlotBytes = 4096;  // a page: written whole or, after a power cut, seen by its sum

}  // namespace

ClaimSlots::ClaimSlots(int directory, std::string volume, std::string shown)
    : directory_(directory),
      volume_(std::move(volume)),
      name_(volume_ + kClaimsFile),
      shown_(std::move(shown)) {}

Result<std::optional<ClaimSlots::Slots>> ClaimSlots::read() const {
  const Result<std::optional<std::string>> text =
      read_small_file(directory_, name_, kSlots * kSlotBytes, shown_);
  if (!text) return Error{text.error()};
  if (!text.value() || text.value()->size() != kSlots * kSlotBytes) return std::optional<Slots>();
  Slots slots;
  size_t unread = 0;
  for (size_t i = 0; i < kSlots; ++i) {
    std::string_view slot = std::string_view(*text.value()).substr(i * kSlotBytes, kSlotBytes);
    slot = slot.substr(0, slot.find_last_not_of('\0') + 1);
    if (slot.empty()) continue;
    Result<Record> record = parse_record(slot, volume_, shown_);
    if (record) {
      slots.records[i] = std::move(record).value();
    } else if (i > 0) {
      ++unread;
    }
  }
  // Nobody whom another boot's note names runs any more, and nothing in it was synced.
  if (slots.records[0] && slots.records[0]->holder.boot_id != this_boot()) slots.records[0].reset();
  slots.damaged = unread == kSlots - 1;
  return std::optional(std::move(slots));
}

// Who has the lock has noted itself first: of two that are as old, the note is the newer.
Result<void> ClaimSlots::bring_up(Record* record) const {
  Result<std::optional<Slots>> found = read();
  if (!found) return Error{found.error()};
  std::optional<Slots>& slots = found.value();
  if (!slots) return {};
  if (slots->damaged) {
    return Error{shown_ + ": the claims beside it (" + name_ +
                 ") are damaged, and with them which epoch was served last is not known; restore "
                 "both from a backup, or remove both once no host uses the volume"};
  }
  for (const size_t i : {1, 2, 0}) {
    std::optional<Record>& slot = slots->records[i];
    if (!slot || age_of(*slot) < age_of(*record)) continue;
    record->epoch = slot->epoch;
    record->order = slot->order;
    record->holder = std::move(slot->holder);
  }
  return {};
}

Result<void> ClaimSlots::clear() const {
  return replace_file(directory_, name_, std::string(kSlots * kSlotBytes, '\0'), shown_);
}

Result<bool> ClaimSlots::write(const Record& record, Outlasts outlasts) const {
  Record short_one = record;
  short_one.reservations = {};
  std::string text = format_record(short_one);
  const Result<std::optional<Slots>> slots = read();
  if (!slots) return Error{slots.error()};
  if (!slots.value() || text.size() > kSlotBytes) return false;
  text.resize(kSlotBytes);
  const auto& [note, first, second] = slots.value()->records;
  const bool over_second = first && (!second || age_of(*second) < age_of(*first));
  const size_t slot = outlasts == Outlasts::kProcess ? 0 : over_second ? 2 : 1;
  const FileDescriptor file(::openat(directory_, name_.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  const ssize_t n = file.valid() ? ::pwrite(file.get(), text.data(), text.size(),
                                            static_cast<off_t>(slot * kSlotBytes))
                                 : -1;
  if (n >= 0 && n != static_cast<ssize_t>(text.size())) errno = ENOSPC;
  if (n != static_cast<ssize_t>(text.size()) ||
      (outlasts == Outlasts::kPowerCut && ::fdatasync(file.get()) != 0)) {
    return Error{"can't write the claim beside " + shown_ + ": " + reason_of(errno)};
  }
  return true;
}

}  // namespace sluice::control
