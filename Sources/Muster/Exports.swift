// The public API uses types of these modules; re-exporting them saves hosts further imports.
@_exported import MusterBase
@_exported import MusterChannel
@_exported import MusterCore
@_exported import MusterCrypto
@_exported import MusterDiscovery
@_exported import MusterWire
