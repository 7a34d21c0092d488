#include "control/local/record.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <sstream>

#include "base/record_text.h"
#include "unit/reservations/reservation_store.h"

namespace sluice::control {
namespace {

constexpr std::string_view kHeading = "sluice-volume 1";

void read_process(RecordReader& lines, Holder* holder) {
  WordReader words(lines.text("process"));
  holder->pid = static_cast<int64_t>(words.number(INT64_MAX));
  holder->start_time = words.number(UINT64_MAX);
  holder->pid_namespace = words.number(UINT64_MAX);
  if (!words.complete()) lines.fail();
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
  return seal(
      fmt::format("{}\nvolume {}\nepoch {}\norder {}\ngeneration {}\nprocess {} {} {}\nboot "
                  "{}\nincarnation {}\n"
                  "socket {}\nreservations {}\n{}",
                  kHeading, record.volume, record.epoch, record.order, record.generation,
                  holder.pid, holder.start_time, holder.pid_namespace, holder.boot_id,
                  holder.incarnation, holder.socket, reservations.size(), reservations));
}

Result<Record> parse_record(std::string_view text, const std::string& volume,
                            const std::string& shown) {
  const auto broken = [&shown](const std::string& what) {
    return Error{
        shown + ' ' + what +
        ", and with it what hosts have reserved is not known; restore it and its copy from "
        "a backup, or remove both once no host uses the volume"};
  };
  if (!text.starts_with(kHeading)) return broken("is no record of this release");
  const std::optional<std::string_view> body = unseal(text);
  if (!body) return broken("is cut short or damaged (checksum)");
  RecordReader lines(*body, kHeading);
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
