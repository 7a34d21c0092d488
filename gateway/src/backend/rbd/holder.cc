#include "rbd/holder.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <fstream>
#include <optional>
#include <sstream>

namespace sluice::rbd {
namespace {

// Start time of the process; 0: it has ended, or is a zombie, whose sockets are closed. nullopt:
// /proc hides it.
std::optional<unsigned long> start_of(long pid) {
  if (kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH) return 0;
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(in, line);
  // The name in parentheses may contain anything; the fields after it begin with 3, starttime is
  // 22.
  const size_t end = line.rfind(')');
  if (end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(end + 1));
  std::string field;
  fields >> field;
  if (field == "Z") return 0;
  for (int i = 4; i <= 22; ++i) fields >> field;
  return field.empty() ? 0 : std::stoul(field);
}

std::string this_boot() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string id;
  in >> id;
  std::array<char, 64> space{};
  const ssize_t n = readlink("/proc/self/ns/pid", space.data(), space.size() - 1);
  return id + "," + (n > 0 ? std::string(space.data(), static_cast<size_t>(n)) : "");
}

}  // namespace

Holder Holder::self(const std::string& client) {
  std::array<char, HOST_NAME_MAX + 1> host{};
  gethostname(host.data(), host.size() - 1);
  const long pid = getpid();
  return {client, host.data(), this_boot(), pid, start_of(pid).value_or(0)};
}

std::string Holder::text() const {
  std::ostringstream out;
  out << client << ' ' << host << ' ' << boot << ' ' << pid << ' ' << started;
  return out.str();
}

std::optional<Holder> Holder::parse(const std::string& text) {
  Holder holder;
  std::istringstream in(text);
  in >> holder.client >> holder.host >> holder.boot >> holder.pid >> holder.started;
  if (in.fail()) return std::nullopt;
  return holder;
}

bool Holder::is_alive() const { return boot == this_boot() && start_of(pid) == started; }

bool Holder::is_dead() const {
  if (boot != this_boot()) return false;
  const std::optional<unsigned long> now = start_of(pid);
  return now && *now != started;
}

bool Holder::is_self() const { return is_alive() && pid == getpid(); }

std::string Holder::describe() const { return "process " + std::to_string(pid) + " on " + host; }

}  // namespace sluice::rbd
