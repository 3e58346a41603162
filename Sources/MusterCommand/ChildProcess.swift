import MusterSystem

/// A child process: a node, the desktop's browser, or ip(8).
package struct ChildProcess {
  package let id: pid_t

  /// Starts a program found in `PATH`; nil if the start fails. Standard input is read from `input`,
  /// or empty if `input` is nil; standard output is redirected to `output`, or discarded if
  /// `output` is nil; standard error is inherited, and the environment, too, if it is nil.
  package static func start(
    _ program: String, _ arguments: [String],
    environment: [String: String]? = nil, input: Int32? = nil, output: Int32?
  ) -> ChildProcess? {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    if let input {
      posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
    } else {
      posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    }
    if let output {
      posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
    } else {
      posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
    }
    let words = [program] + arguments
    let pointers = words.map { strdup($0) } + [nil]
    let variables = environment.map { $0.map { strdup("\($0)=\($1)") } + [nil] } ?? []
    defer { for pointer in pointers + variables { free(pointer) } }
    var id = pid_t()
    let isStarted =
      variables.isEmpty
      ? posix_spawnp(&id, program, &actions, nil, pointers, environ) == 0
      : posix_spawnp(&id, program, &actions, nil, pointers, variables) == 0
    guard isStarted else { return nil }
    return ChildProcess(id: id)
  }

  /// Sends SIGTERM and waits for the process to end; sends SIGKILL after `seconds`.
  package func stop(within seconds: Int) {
    kill(id, SIGTERM)
    var status: Int32 = 0
    for _ in 0..<seconds * 50 {
      if waitpid(id, &status, WNOHANG) != 0 { return }
      usleep(20_000)
    }
    kill(id, SIGKILL)
    waitpid(id, &status, 0)
  }

  /// Runs a program found in `PATH` to its end, with this standard input, which fits into a pipe;
  /// returns its exit code, or nil if it cannot be started.
  package static func run(_ program: String, _ arguments: [String], input: String) -> Int32? {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { return nil }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    let bytes = Array(input.utf8)
    _ = bytes.withUnsafeBytes { write(ends[1], $0.baseAddress, $0.count) }
    close(ends[1])
    defer { close(ends[0]) }
    guard let process = start(program, arguments, input: ends[0], output: nil) else { return nil }
    var status: Int32 = 0
    while waitpid(process.id, &status, 0) < 0, errno == EINTR {}
    return code(status)
  }

  /// The exit code of an ended process, or 128 plus the number of the signal that ended the
  /// process; nil while the process runs, and after the code has been returned once.
  package func exitCode() -> Int32? {
    var status: Int32 = 0
    guard waitpid(id, &status, WNOHANG) == id else { return nil }
    return Self.code(status)
  }

  private static func code(_ status: Int32) -> Int32 {
    (status & 0x7F) == 0 ? (status >> 8) & 0xFF : 128 + (status & 0x7F)
  }
}
