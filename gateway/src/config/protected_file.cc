#include "config/protected_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace sluice::config {
namespace {

Reader this_process() {
  Reader reader{.uid = geteuid(), .gids = {getegid()}};
  const int count = getgroups(0, nullptr);
  if (count > 0) {
    std::vector<gid_t> groups(static_cast<size_t>(count));
    const int got = getgroups(count, groups.data());
    if (got > 0) reader.gids.insert(reader.gids.end(), groups.begin(), groups.begin() + got);
  }
  return reader;
}

Error failed(const std::string& path, int error) {
  return Error{"can't read " + path + ": " + std::strerror(error)};
}

Result<FileText> read_descriptor(int fd, const std::string& path, size_t limit) {
  struct stat status{};
  if (fstat(fd, &status) != 0) return failed(path, errno);
  if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode)) {
    return Error{"can't read " + path + ": not a file"};
  }
  FileText result;
  result.fault =
      protection_fault(path, {status.st_uid, status.st_gid, status.st_mode}, this_process());
  std::array<char, 4096> chunk;
  for (;;) {
    const ssize_t got = ::read(fd, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(path, errno);
    if (got == 0) return result;
    result.text.append(chunk.data(), static_cast<size_t>(got));
    if (result.text.size() > limit) {
      return Error{fmt::format("{} is larger than {} bytes", path, limit)};
    }
  }
}

}  // namespace

std::string protection_fault(const std::string& path, const FileOwner& owner,
                             const Reader& reader) {
  if (owner.uid != 0 && owner.uid != reader.uid) {
    return fmt::format("{} belongs to uid {}, neither root nor this process; chown it", path,
                       owner.uid);
  }
  const mode_t mode = owner.mode & 0777;
  const bool ours = std::count(reader.gids.begin(), reader.gids.end(), owner.gid) > 0;
  const bool group_fine = (mode & 070) == 0 || ((mode & 070) == 040 && owner.uid == 0 && ours);
  if ((mode & 07) == 0 && group_fine) return {};
  return fmt::format("{} has mode {:04o}, others can read or change it; run: chmod 600 {}", path,
                     mode, path);
}

Result<FileText> read_file(const std::string& path, size_t limit) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return failed(path, errno);
  Result<FileText> result = read_descriptor(fd, path, limit);
  ::close(fd);
  return result;
}

}  // namespace sluice::config
