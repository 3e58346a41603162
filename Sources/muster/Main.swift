import MusterCommand

@main
struct Main {
  static func main() async { await CommandLineTool.main() }
}
