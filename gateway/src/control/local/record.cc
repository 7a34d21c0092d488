#include "control/local/record.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <sstream>

#include "control/local/files.h"
#include "unit/reservations/reservation_store.h"

namespace sluice::control {
namespace {

constexpr std::string_view kMagic = "sluice-volume 1\n";
constexpr size_t kSealBytes = 16;  // "crc32c 01234567\n"

// Removes "name value\n" lines from the front; after an error the object stays invalid.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  std::string text(std::string_view name) {
    const size_t end = rest_.find('\n');
    if (bad_ || end == std::string_view::npos || !rest_.starts_with(name) ||
        rest_.size() <= name.size() || rest_[name.size()] != ' ') {
      bad_ = true;
      return {};
    }
    std::string value(rest_.substr(name.size() + 1, end - name.size() - 1));
    rest_.remove_prefix(end + 1);
    return value;
  }

  uint64_t number(std::string_view name) { return number_of(text(name)); }

  uint64_t number_of(std::string_view digits) {
    uint64_t value = 0;
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || stop != digits.data() + digits.size()) bad_ = true;
    return value;
  }

  void fail() { bad_ = true; }
  bool bad() const { return bad_; }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
  bool bad_ = false;
};

void read_process(Lines& lines, Holder* holder) {
  std::istringstream words(lines.text("process"));
  std::string extra;
  if (!(words >> holder->pid >> holder->start_time >> holder->pid_namespace) || words >> extra) {
    lines.fail();
  }
}

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

const std::string& this_boot() {
  static const std::string id = first_line("/proc/sys/kernel/random/boot_id");
  return id;
}

Holder this_process(const std::string& incarnation, const std::string& socket) {
  Holder holder;
  holder.pid = ::getpid();
  holder.incarnation = incarnation;
  holder.socket = socket;
  holder.boot_id = this_boot();
  const std::string stat = first_line("/proc/self/stat");
  // The name in parentheses may contain anything; the start time is the 20th field after it.
  std::istringstream fields(stat.substr(std::min(stat.rfind(')') + 1, stat.size())));
  std::string skipped;
  for (int i = 0; i < 19; ++i) fields >> skipped;
  fields >> holder.start_time;
  struct stat status{};
  if (::stat("/proc/self/ns/pid", &status) == 0) holder.pid_namespace = status.st_ino;
  return holder;
}

std::string format_record(const Record& record) {
  const std::string reservations = lun::format_reservations(record.volume, record.reservations);
  const Holder& holder = record.holder;
  const std::string text = fmt::format(
      "{}volume {}\nepoch {}\norder {}\ngeneration {}\nprocess {} {} {}\nboot {}\nincarnation {}\n"
      "socket {}\nreservations {}\n{}",
      kMagic, record.volume, record.epoch, record.order, record.generation, holder.pid,
      holder.start_time, holder.pid_namespace, holder.boot_id, holder.incarnation, holder.socket,
      reservations.size(), reservations);
  return text + "crc32c " + checksum_text(text) + '\n';
}

Result<Record> parse_record(std::string_view text, const std::string& volume,
                            const std::string& shown) {
  const auto broken = [&shown](const std::string& what) {
    return Error{
        shown + ' ' + what +
        ", and with it what hosts have reserved is not known; restore it and its copy from "
        "a backup, or remove both once no host uses the volume"};
  };
  if (!text.starts_with(kMagic)) return broken("is no record of this release");
  if (text.size() < kMagic.size() + kSealBytes) return broken("is cut short");
  const std::string_view body = text.substr(0, text.size() - kSealBytes);
  if (text.substr(body.size()) != "crc32c " + checksum_text(body) + '\n') {
    return broken("is damaged (checksum)");
  }
  Lines lines(body.substr(kMagic.size()));
  Record record;
  record.volume = lines.text("volume");
  record.epoch = lines.number("epoch");
  record.order = lines.number("order");
  record.generation = lines.number("generation");
  read_process(lines, &record.holder);
  record.holder.boot_id = lines.text("boot");
  record.holder.incarnation = lines.text("incarnation");
  record.holder.socket = lines.text("socket");
  const uint64_t size = lines.number("reservations");
  if (lines.bad() || size != lines.rest().size()) return broken("is damaged");
  if (record.volume != volume) return broken("is of volume " + record.volume);
  Result<lun::ReservationState> state = lun::parse_reservations(lines.rest(), volume, shown);
  if (!state) return broken("is damaged (" + state.error() + ")");
  record.reservations = std::move(state).value();
  return record;
}

}  // namespace sluice::control
