#include "control/local/record_slots.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/limits.h"
#include "base/record_text.h"
#include "control/local/files.h"
#include "control/local/record_files.h"

namespace sluice::control {
namespace {

constexpr std::string_view kHeading = "sluice-record-slot 1";
constexpr size_t kPage = 4096;
// Room for about 40 registrations, so that a usual cluster never needs more.
constexpr size_t kLeastSlot = 2 * kPage;
// The lines around a record, and the holder of the next owner, which may have a longer name.
constexpr size_t kSlack = 1024;
// A record is a state of reservations and a few lines.
constexpr size_t kLargestSlot = limits::kMaxReservationState + 4 * kPage;

std::string format_slot(uint64_t sequence, std::string_view replaces, std::string_view text) {
  return seal(fmt::format("{}\nsequence {}\nreplaces {}\nrecord {}\n{}", kHeading, sequence,
                          replaces, text.size(), text));
}

// The bytes of a slot after its text belong to an earlier, longer one.
std::optional<std::string_view> sealed_part(std::string_view slot) {
  RecordReader lines(slot, kHeading);
  lines.number("sequence");
  lines.text("replaces");
  const uint64_t size = lines.number("record", kLargestSlot);
  if (lines.bad()) return std::nullopt;
  const size_t before = slot.size() - lines.rest().size();
  static const size_t seal_bytes = seal({}).size();
  if (lines.rest().size() < size + seal_bytes) return std::nullopt;
  return slot.substr(0, before + size + seal_bytes);
}

std::optional<RecordSlots::Slot> parse_slot(std::string_view bytes, const std::string& volume,
                                            const std::string& shown) {
  const std::optional<std::string_view> sealed = sealed_part(bytes);
  const std::optional<std::string_view> body = sealed ? unseal(*sealed) : std::nullopt;
  if (!body) return std::nullopt;
  RecordReader lines(*body, kHeading);
  RecordSlots::Slot slot;
  slot.sequence = lines.number("sequence");
  slot.replaces = lines.text("replaces");
  lines.number("record");
  slot.text = lines.rest();
  Result<Record> record = parse_record(slot.text, volume, shown);
  if (lines.bad() || !record) return std::nullopt;
  slot.record = std::move(record).value();
  return slot;
}

bool is_empty(std::string_view bytes) {
  return bytes.find_first_not_of('\0') == std::string_view::npos;
}

Result<std::string> read_slots(int file, size_t size, const std::string& what) {
  std::string bytes(size, '\0');
  size_t have = 0;
  while (have < size) {
    const ssize_t n = ::pread(file, bytes.data() + have, size - have, static_cast<off_t>(have));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error{"can't read " + what + ": " + reason_of(errno)};
    if (n == 0) break;  // it was cut short meanwhile: the slot is then unreadable
    have += static_cast<size_t>(n);
  }
  return bytes;
}

}  // namespace

const RecordSlots::Slot* RecordSlots::Found::newest() const {
  const auto& [first, second] = slots;
  if (!first || !second) return first ? &*first : second ? &*second : nullptr;
  return first->sequence > second->sequence ? &*first : &*second;
}

RecordSlots::RecordSlots(int directory, std::string volume, std::string shown)
    : directory_(directory),
      volume_(std::move(volume)),
      name_(volume_ + kSlotsFile),
      shown_(std::move(shown)) {}

Result<std::optional<RecordSlots::Found>> RecordSlots::find() const {
  const std::string what = "the slots beside " + shown_ + " (" + name_ + ")";
  const FileDescriptor file(::openat(directory_, name_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.valid() && errno == ENOENT) return std::optional<Found>();
  struct stat status{};
  if (!file.valid() || ::fstat(file.get(), &status) != 0) {
    return Error{"can't open " + what + ": " + reason_of(errno)};
  }
  Found found;
  const auto size = static_cast<size_t>(status.st_size);
  found.damaged = size == 0 || size % (2 * kPage) != 0 || size / 2 > kLargestSlot;
  if (found.damaged) return std::optional(std::move(found));
  found.slot_bytes = size / 2;
  const Result<std::string> bytes = read_slots(file.get(), size, what);
  if (!bytes) return Error{bytes.error()};
  for (size_t i = 0; i < found.slots.size(); ++i) {
    const std::string_view slot =
        std::string_view(bytes.value()).substr(i * found.slot_bytes, found.slot_bytes);
    if (is_empty(slot)) continue;
    found.slots[i] = parse_slot(slot, volume_, shown_);
    if (!found.slots[i]) found.damaged = true;
  }
  return std::optional(std::move(found));
}

Result<bool> RecordSlots::reserve(size_t bytes, const std::optional<Found>& found) const {
  const size_t needed = std::max(kLeastSlot, (bytes + kSlack + kPage - 1) / kPage * kPage);
  if (found && found->slot_bytes >= needed) return true;
  if (needed > kLargestSlot) return Error{shown_ + " would be too large"};
  std::string content(2 * needed, '\0');
  if (const Slot* newest = found ? found->newest() : nullptr) {
    const std::string slot = format_slot(newest->sequence, newest->replaces, newest->text);
    content.replace(0, slot.size(), slot);
  }
  const Result<void> made = replace_file(directory_, name_, content, shown_, nullptr,
                                         Outlasts::kPowerCut, Updates::kInPlace);
  if (made) return true;
  if (!is_out_of_space(errno)) return Error{made.error()};
  ::unlinkat(directory_, (name_ + ".new").c_str(), 0);  // its blocks are space for others
  return false;
}

Result<bool> RecordSlots::write(std::string_view text, std::string_view replaces,
                                const std::optional<Found>& found) const {
  if (!found) return false;
  const Slot* newest = found->newest();
  const std::string slot = format_slot(newest ? newest->sequence + 1 : 1, replaces, text);
  if (slot.size() > found->slot_bytes) return false;
  // The newest record is never overwritten.
  const bool over_second = newest && found->slots[0] && newest == &*found->slots[0];
  const size_t at = over_second ? found->slot_bytes : 0;
  const FileDescriptor file(::openat(directory_, name_.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  const ssize_t n =
      file.valid() ? ::pwrite(file.get(), slot.data(), slot.size(), static_cast<off_t>(at)) : -1;
  if (n >= 0 && n != static_cast<ssize_t>(slot.size())) errno = ENOSPC;
  if (n != static_cast<ssize_t>(slot.size()) || ::fdatasync(file.get()) != 0) {
    return Error{"can't write the slots beside " + shown_ + ": " + reason_of(errno)};
  }
  return true;
}

}  // namespace sluice::control
