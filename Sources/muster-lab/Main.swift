import MusterLab

@main
struct Main {
  static func main() async { await LabTool.main() }
}
